"""The control plane: once per period, policies decide what the data plane changes.

What policies of a family see and order belongs to a system (``sim/systems``).
"""

from .family import ChosenPolicy, Family, decide
from .policy import NO_POLICY, Policy, PolicySpec

__all__ = ["NO_POLICY", "ChosenPolicy", "Family", "Policy", "PolicySpec", "decide"]
