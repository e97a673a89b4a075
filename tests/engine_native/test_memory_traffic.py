"""Counters of memory controllers: found in sysfs trees, read, and told where there are none."""

import mmap
import os
from pathlib import Path

import pytest

from numatwin.engine_native import memory_traffic
from numatwin.engine_native.memory_traffic import (
    Counter,
    MemoryTraffic,
    NoCounters,
    traffic_counters,
)

FORMATS = {"format/event": "config:0-7", "format/umask": "config:8-15"}
SCALE = "6.103515625e-5"  # of a MiB: a line
PAGE_FAULTS = 2  # of type 1, the kernel's software events


def tree(folder: Path, device: str, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / device / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return folder


def events(event: str, name: str = "cas_count_read") -> dict[str, str]:
    return {f"events/{name}": event, f"events/{name}.scale": SCALE, f"events/{name}.unit": "MiB"}


def test_a_server_of_two_sockets(tmp_path: Path) -> None:
    for channel in range(2):
        tree(
            tmp_path,
            f"uncore_imc_{channel}",
            {
                "type": str(20 + channel),
                "cpumask": "0,16",
                **FORMATS,
                **events("event=0x04,umask=0x03"),
                **events("event=0x04,umask=0x0c", "cas_count_write"),
            },
        )
    tree(tmp_path, "cpu", {"type": "4", **FORMATS, **events("event=0x3c")})
    read, write = 0x0304, 0x0C04
    assert list(traffic_counters(tmp_path)) == [
        Counter(kind, config, cpu, 64.0)
        for kind in (20, 21)
        for config in (read, write)
        for cpu in (0, 16)
    ]


def test_amd_names_no_events(tmp_path: Path) -> None:
    formats = {"format/event": "config:0-7", "format/rdwrmask": "config:8-9"}
    tree(tmp_path, "amd_umc_0", {"type": "30", "cpumask": "0", **formats})
    assert list(traffic_counters(tmp_path)) == [
        Counter(30, 0x010A, 0, 64.0),
        Counter(30, 0x020A, 0, 64.0),
    ]


def test_links_between_sockets_are_not_memory(tmp_path: Path) -> None:
    """Data flits of a UPI: nine to a line."""
    tree(tmp_path, "uncore_upi_0", {"type": "40", "cpumask": "0", **FORMATS})
    assert list(traffic_counters(tmp_path)) == [Counter(40, 0x0F02, 0, 64 / 9, of_link=True)]
    with pytest.raises(NoCounters, match="of its memory controllers"):
        MemoryTraffic(tmp_path)


def test_an_event_without_its_format_is_not_counted(tmp_path: Path) -> None:
    tree(tmp_path, "uncore_imc_0", {"type": "20", **events("event=0x04,umask=0x03")})
    assert list(traffic_counters(tmp_path)) == []


def test_where_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(NoCounters, match="shows no counters of its memory controllers"):
        MemoryTraffic(tmp_path)


def page_faults(folder: Path) -> Path:
    """Stands in for a controller: an event that every host has."""
    return tree(
        folder,
        "uncore_imc_0",
        {
            "type": "1",
            "cpumask": f"0-{(os.cpu_count() or 1) - 1}",
            "format/event": "config:0-7",
            **events(f"event={PAGE_FAULTS:#04x}"),
        },
    )


def test_counts_grow_by_what_is_done(tmp_path: Path) -> None:
    try:
        traffic = MemoryTraffic(page_faults(tmp_path))
    except NoCounters as failure:
        pytest.skip(str(failure))
    before, pages = traffic.bytes(), 5_000
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            memory[page * mmap.PAGESIZE] = 1
    assert traffic.bytes() - before >= 0.99 * pages * 64
    traffic.close()


def test_what_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(kind: int, config: int, *, cpu: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(memory_traffic, "opened", denied)
    with pytest.raises(NoCounters) as failure:
        MemoryTraffic(page_faults(tmp_path))
    assert str(failure.value) == (
        "the memory controllers' counters cannot be read: Permission denied: "
        "expected kernel.perf_event_paranoid of 0, or CAP_PERFMON"
    )
