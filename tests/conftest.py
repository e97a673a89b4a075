"""How Hypothesis plays in all tests: no limit of time for an example.

On a busy host a process may wait for a processor for longer than any such limit. What must be
quick has a test of its own, which counts processor time.
"""

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
