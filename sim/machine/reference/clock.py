"""SimPy's clock as planes drive it: up to a time, without the events due at it."""

import simpy
from simpy.events import URGENT


def run_until(env: simpy.Environment, until: int) -> int:
    """Handles all events before ``until`` and stands there; returns how many there were."""
    events = 0
    while env.peek() < until:
        env.step()
        events += 1
    if env.now < until:  # the clock goes on; what is due then comes later
        pause = env.event()
        pause._ok, pause._value = True, None
        env.schedule(pause, URGENT, until - env.now)
        env.step()
    return events
