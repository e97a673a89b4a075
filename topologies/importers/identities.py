"""Which processors a machine has, from /proc/cpuinfo or from hwloc's infos."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..schema_types import ProcessorIdentity

# Linux' /proc/cpuinfo has a name for each of these on each architecture.
_CPUINFO = {
    "model name": "model_name",
    "vendor_id": "vendor",
    "vendor": "vendor",
    "cpu family": "family",
    "family": "family",
    "model": "model",
    "stepping": "stepping",
    "CPU implementer": "implementer",
    "CPU part": "part",
}
_HWLOC = {
    "CPUModel": "model_name",
    "CPUVendor": "vendor",
    "CPUFamilyNumber": "family",
    "CPUModelNumber": "model",
    "CPUStepping": "stepping",
    "CPUImplementer": "implementer",
    "CPUPart": "part",
}
_LSCPU = {
    "Model name": "model_name",
    "Vendor ID": "vendor",
    "CPU family": "family",
    "Model": "model",
    "Stepping": "stepping",
}
_TEXTS = ("model_name", "vendor")
_PVR = re.compile(r"\(pvr ([0-9a-fA-F]{4}) [0-9a-fA-F]{4}\)", re.ASCII)


def cpuinfo_identities(text: str, board: str | None) -> dict[int, ProcessorIdentity]:
    """The processor of each CPU in /proc/cpuinfo; what is not understood is left out."""
    found: dict[int, ProcessorIdentity] = {}
    cpu: int | None = None
    facts: dict[str, object] = {}
    for line in [*text.splitlines(), "processor: end"]:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        if key == "processor":
            if cpu is not None and facts:
                found[cpu] = _identity(facts, board)
            cpu = int(value) if re.fullmatch(r"\d{1,5}", value, re.ASCII) else None
            facts = {}
        elif key in _CPUINFO:
            _put(facts, _CPUINFO[key], value)
        elif key == "cpu" and "POWER" in value.upper():
            facts |= {"model_name": value[:200], "vendor": "IBM-POWER"}
        elif key == "revision" and (match := _PVR.search(value)):
            facts |= {"pvr": int(match[1], 16), "vendor": "IBM-POWER"}
        elif key == "flags" and re.search(r"\bhypervisor\b", value):
            facts["virtual"] = True
    return found


def hwloc_identity(infos: Mapping[str, str], board: str | None) -> ProcessorIdentity | None:
    """The processor in the infos of a package; None where they say nothing of it."""
    facts: dict[str, object] = {}
    for name, field in _HWLOC.items():
        if name in infos:
            _put(facts, field, infos[name])
    if match := _PVR.search(infos.get("CPURevision", "")):
        facts["pvr"] = int(match[1], 16)
    if "pvr" in facts or "POWER" in str(facts.get("model_name", "")).upper():
        facts["vendor"] = "IBM-POWER"
    return _identity(facts, board) if facts else None


def lscpu_identity(fields: Mapping[str, str]) -> ProcessorIdentity | None:
    """The processor in the fields of lscpu; None where they say nothing of it."""
    facts: dict[str, object] = {}
    for name, field in _LSCPU.items():
        if name in fields and fields[name] != "-":
            _put(facts, field, fields[name])
    if match := _PVR.search(fields.get("Model", "")):
        facts |= {"pvr": int(match[1], 16), "vendor": "IBM-POWER"}
    if "POWER" in str(facts.get("model_name", "")).upper():
        facts["vendor"] = "IBM-POWER"
    if facts and "Hypervisor vendor" in fields:
        facts["virtual"] = True
    return _identity(facts, None) if facts else None


def _put(facts: dict[str, object], field: str, value: str) -> None:
    if field in _TEXTS:
        if value and value.isprintable():
            facts[field] = re.sub(r"\s+", " ", value)[:200]
    elif re.fullmatch(r"\d{1,9}|0x[0-9a-fA-F]{1,8}", value, re.ASCII):
        facts[field] = int(value, 0) if value.startswith("0x") else int(value)


def _identity(facts: Mapping[str, object], board: str | None) -> ProcessorIdentity:
    values = dict(facts)
    if "implementer" in values:
        values["vendor"] = "Arm"
    if board:
        values["board"] = board[:200]
    return ProcessorIdentity.model_validate(values)
