"""Workloads: descriptions in YAML, their schema, key distributions, phases over time."""

from .catalogue import load_workload, workload_from_document, workload_names
from .keys import Density, KeyDistribution
from .schema import DataObject, Operation, WorkloadDescription
from .workload import PhaseState, ResolvedOperation, Workload, resolve, scaled

__all__ = [
    "DataObject",
    "Density",
    "KeyDistribution",
    "Operation",
    "PhaseState",
    "ResolvedOperation",
    "Workload",
    "WorkloadDescription",
    "load_workload",
    "resolve",
    "scaled",
    "workload_from_document",
    "workload_names",
]
