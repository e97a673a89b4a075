"""The planes that a scenario names."""

PLANES = ("flow", "event", "reference", "native", "emulator")
DRAWING_PLANES = ("event", "reference")
OWN_HORIZONS = ("event_horizon", "native_horizon")
NATIVE, EMULATOR = "native", "emulator"
REAL = (NATIVE, EMULATOR)  # planes that run the engine
SIMULATED = ("flow", "event", "reference")
