"""Caches and coherence of the counting plugin: hand-worked cases, and a reference in Python.

Nodes have 1 MiB of memory each; ``at(node, line)`` is an address there. One processor per node,
unless said: first level 4 lines (2 sets of 2 ways), last level 16 lines (4 sets of 4 ways).
"""

import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_caches import LINE, MIB, PLUGIN, Counts, Played, Shape, both, without_bytes

SMALL = ((1, 2, 2), (1, 4, 4))
SIZES = pytest.mark.parametrize("nodes", [2, 8, 64])


def at(node: int, line: int = 0) -> int:
    """The address of a line in a node's memory."""
    return node * MIB + line * LINE


def lines_of(played: Played) -> Counts:
    """Counts but for accesses and their bytes."""
    known = without_bytes(played.counts())
    return {name: known[name] for name in known if name not in ("reads_user", "writes_user")}


@SIZES
def test_a_line_comes_from_its_home_once(nodes: int) -> None:
    played = Played(Shape(nodes, 1, SMALL))
    far = nodes - 1
    played.read(0, at(far), at(far) + 8, at(far) + 56)
    assert played.counts() == {
        "reads_user": {(0, far): 3},
        "read_bytes_user": {(0, far): 24},
        "read_misses_user": {(0, far): 1},
        "memory_reads": {(0, far): 1},
        "found": {(0, 2): 1},
    }


@SIZES
def test_a_modified_line_is_written_back_when_it_is_evicted(nodes: int) -> None:
    # Lines 0, 4, 8, 12, 16 share a set of four ways: the fifth evicts the first.
    played = Played(Shape(nodes, 1, SMALL))
    far = nodes - 1
    played.write(0, at(far, 0))
    played.read(0, at(far, 4), at(far, 8), at(far, 12))
    assert "write_backs" not in played.counts()
    played.read(0, at(far, 16), at(far, 20))  # evict line 0 (modified) and line 4 (clean)
    assert lines_of(played) == {
        "write_misses_user": {(0, far): 1},
        "read_misses_user": {(0, far): 5},
        "memory_reads": {(0, far): 6},
        "write_backs": {(0, far): 1},
        "found": {(0, 2): 6},
    }


@SIZES
def test_true_sharing_moves_the_line_between_two_caches(nodes: int) -> None:
    """Two processors add to one counter in turn: a read and a write each, home on a third node.

    =====  ====  =====  ======================================================================
    turn   cpu   does   messages and data
    =====  ====  =====  ======================================================================
    1      0     read   memory → 0, Exclusive
    1      0     write  silent: Modified
    2      last  read   home asks 0 (probe), which sends it to last and home: both Shared
    2      last  write  upgrade: home tells 0 (probe), which answers last: Modified
    3      0     read   the same the other way …
    =====  ====  =====  ======================================================================
    """
    played = Played(Shape(nodes, 1, SMALL))
    last, home, turns = nodes - 1, nodes // 2, 100
    for turn in range(turns):
        cpu = last if turn % 2 else 0
        played.read(cpu, at(home))
        played.write(cpu, at(home))
    to_last, to_first = turns // 2, turns // 2 - 1  # the first turn finds nobody
    expected: Counts = {
        "read_misses_user": {(0, home): turns // 2, (last, home): turns // 2},
        "memory_reads": {(0, home): 1},
        "transfers": {(last, 0): to_last, (0, last): to_first},
        "downgrades": {(0, home): to_last, (last, home): to_first},
        "upgrades": {(last, home): to_last, (0, home): to_first},
        "invalidations": {(last, 0): to_last, (0, last): to_first},
        "probes": {(home, 0): 2 * to_last, (home, last): 2 * to_first},
        "answers": {(0, last): to_last, (last, 0): to_first},
        "found": {(0, 2): turns // 2, (last, 2): turns // 2},
    }
    if home == last:  # the reader's data bring it home
        expected["home_downgrades"] = {(0, home): to_last}
    assert lines_of(played) == expected


@SIZES
def test_false_sharing_moves_a_line_that_separate_words_would_not(nodes: int) -> None:
    """Writes alone: the line goes from cache to cache with each, and memory is not written."""
    turns, last = 50, nodes - 1
    shared, separate = Played(Shape(nodes, 1, SMALL)), Played(Shape(nodes, 1, SMALL))
    for _ in range(turns):
        for cpu in (0, last):
            shared.write(cpu, at(0) + (8 if cpu else 0))  # two words of one line
            separate.write(cpu, at(0, 1 if cpu else 0))  # two lines
    assert lines_of(shared) == {
        "write_misses_user": {(0, 0): turns, (last, 0): turns},
        "memory_reads": {(0, 0): 1},
        "transfers": {(last, 0): turns, (0, last): turns - 1},
        "invalidations": {(last, 0): turns, (0, last): turns - 1},
        "probes": {(0, 0): turns, (0, last): turns - 1},
        "found": {(0, 2): turns, (last, 2): turns},
    }
    assert lines_of(separate) == {
        "write_misses_user": {(0, 0): 1, (last, 0): 1},
        "memory_reads": {(0, 0): 1, (last, 0): 1},
        "found": {(0, 2): 1, (last, 2): 1},
    }


@SIZES
def test_a_producer_and_a_consumer(nodes: int) -> None:
    """Processor 0 writes a line of its own memory, the last one reads it, many times over.

    Each time after the first: an upgrade (the reader loses its copy), then a transfer with a
    write-back home, which is the producer's own node.
    """
    played, last, times = Played(Shape(nodes, 1, SMALL)), nodes - 1, 20
    for _ in range(times):
        played.write(0, at(0))
        played.read(last, at(0))
    assert lines_of(played) == {
        "write_misses_user": {(0, 0): 1},
        "read_misses_user": {(last, 0): times},
        "memory_reads": {(0, 0): 1},
        "transfers": {(last, 0): times},
        "downgrades": {(0, 0): times},
        "upgrades": {(0, 0): times - 1},
        "invalidations": {(0, last): times - 1},
        "probes": {(0, 0): times, (0, last): times - 1},
        "answers": {(last, 0): times - 1},
        "found": {(0, 2): 1, (last, 2): times},
    }


@SIZES
def test_an_owner_keeps_what_it_has_modified_and_sends_it(nodes: int) -> None:
    """MOESI: 0 writes a line of the last node, which reads it; 0 drops it, then the last writes it.

    ====  ======  =================================================================
    cpu   does    messages and data
    ====  ======  =================================================================
    0     write   memory → 0, Modified
    last  read    home asks 0, which sends it and stays its owner: no write-back
    0     write   upgrade: home tells the last, which answers
    last  read    as before
    0     evicts  written back: now both memory and the last have it
    last  write   upgrade: nobody else has it
    ====  ======  =================================================================
    """
    played, last = Played(Shape(nodes, 1, SMALL, owned=True)), nodes - 1
    played.write(0, at(last))
    played.read(last, at(last))
    played.write(0, at(last))
    played.read(last, at(last))
    played.read(0, *(at(0, line) for line in (4, 8, 12, 16)))  # of its set
    played.write(last, at(last))
    assert lines_of(played) == {
        "write_misses_user": {(0, last): 1},
        "read_misses_user": {(last, last): 2, (0, 0): 4},
        "memory_reads": {(0, last): 1, (0, 0): 4},
        "transfers": {(last, 0): 2},
        "upgrades": {(0, last): 1, (last, last): 1},
        "invalidations": {(0, last): 1},
        "write_backs": {(0, last): 1},
        "probes": {(last, 0): 2, (last, last): 1},
        "answers": {(last, 0): 1},
        "found": {(0, 2): 5, (last, 2): 2},
    }


@SIZES
def test_lines_that_are_only_read_are_fetched_once_by_each_node(nodes: int) -> None:
    """The second reader makes the home ask the first, which has it Exclusive; no other does."""
    played = Played(Shape(nodes, 1, SMALL))
    for _ in range(5):
        for cpu in range(nodes):
            played.read(cpu, at(0))
    assert lines_of(played) == {
        "read_misses_user": {(cpu, 0): 1 for cpu in range(nodes)},
        "memory_reads": {(cpu, 0): 1 for cpu in range(nodes)},
        "probes": {(0, 0): 1},
        "answers": {(0, 0): 1},
        "found": {(cpu, 2): 1 for cpu in range(nodes)},
    }


@SIZES
def test_a_write_takes_the_line_from_all_readers(nodes: int) -> None:
    played = Played(Shape(nodes, 1, SMALL))
    for cpu in range(nodes):
        played.read(cpu, at(0))
    before = played.counts()
    played.write(1, at(0))
    after = played.counts()
    others = [node for node in range(nodes) if node != 1]
    assert after["upgrades"] == {(1, 0): 1}
    assert after["invalidations"] == {(1, node): 1 for node in others}
    assert after["answers"] == {(0, 0): 1} | {(node, 1): 1 for node in others}
    assert after["memory_reads"] == before["memory_reads"]


def test_snoops_reach_holders_without_probes() -> None:
    played = Played(Shape(4, 1, SMALL, snoop_domain=(1, 1, 2, 2)))
    played.read(0, at(0))
    played.read(1, at(0))  # of the same domain as the holder, 0: no probe
    played.read(2, at(0))
    played.write(3, at(0))  # 2 is snooped; 0 and 1 are asked by the home
    found = played.counts()
    assert found["probes"] == {(0, 0): 1, (0, 1): 1}
    assert found["answers"] == {(0, 3): 1, (1, 3): 1}
    assert found["invalidations"] == {(3, 0): 1, (3, 1): 1, (3, 2): 1}


@pytest.mark.parametrize("exclusive", [False, True])
def test_what_private_caches_hold_stays_only_where_the_last_level_is_exclusive(
    exclusive: bool,
) -> None:
    # Line 0 is read again and again, in the first level: the last one hears of it once.
    played = Played(Shape(1, 1, SMALL, exclusive=exclusive))
    for line in (4, 8, 12, 16, 20, 24):
        played.read(0, at(0, 0), at(0, line))
    assert played.counts()["read_misses_user"] == {(0, 0): 7 if exclusive else 8}


@pytest.mark.parametrize("rows", [1, 2, 3, 36, 224])
def test_each_line_of_a_block_has_a_set_of_its_own(rows: int) -> None:
    """As many lines in a row as a last level holds, from any block on: all are found again, and
    one more is found in no place of its own.
    """
    sets, ways = 64 * rows, 3
    played, begin = Played(Shape(1, 1, ((1, 2, 2), (1, sets, ways)), node_mib=64)), 7 * sets
    for _ in range(2):
        played.stream(0, at(0, begin), sets * ways, LINE)
    assert played.counts()["read_misses_user"] == {(0, 0): sets * ways}
    played.stream(0, at(0, begin + sets * ways), 1, LINE)
    played.stream(0, at(0, begin), sets * ways, LINE)
    assert played.counts()["read_misses_user"][0, 0] > sets * ways + 1


@pytest.mark.parametrize("sets", [1, 3, 17, 96, 512])
def test_private_caches_have_any_number_of_sets(sets: int) -> None:
    played = Played(Shape(1, 1, ((1, sets, 3), (1, 4096, 8)), node_mib=64))
    for _ in range(2):
        played.stream(0, at(0, 7 * sets), sets * 3, LINE)
    assert played.counts()["found"] == {(0, 2): sets * 3}


def test_replacement_stays_exact_however_often_a_set_is_used() -> None:
    """Times of uses are 15 bits wide, and begin anew."""
    shape, drawn = Shape(1, 1, ((1, 1, 4), (1, 2, 4))), Random(5)
    steps = [(0, at(0, drawn.randrange(9)), drawn.random() < 0.2) for _ in range(120_000)]
    played, reference = both(shape, steps)
    assert played == reference


def test_tags_that_are_too_narrow_for_the_memory_are_refused() -> None:
    last = (1, 64, 4)
    with pytest.raises(ValueError, match="Shape"):
        Played(Shape(1, 1, ((1, 1, 2), last), node_mib=1 << 16))
    played = Played(Shape(1, 1, ((1, 2, 2), last), node_mib=1 << 16))
    end = (1 << 16) * MIB
    for _ in range(2):
        played.read(0, end - LINE, 0)
    assert played.counts()["read_misses_user"] == {(0, 0): 2}


def test_cores_of_one_domain_share_without_traffic() -> None:
    """Two cores of a node write in turn: private caches are emptied, nothing leaves the node."""
    played = Played(Shape(2, 2, ((1, 2, 2), (2, 4, 4))))
    for _ in range(10):
        played.write(0, at(1))
        played.write(1, at(1))
    assert lines_of(played) == {
        "write_misses_user": {(0, 1): 1},
        "memory_reads": {(0, 1): 1},
        "found": {(0, 1): 19, (0, 2): 1},
    }


def test_without_coherence_each_cache_is_alone() -> None:
    played = Played(Shape(2, 1, SMALL, coherent=False))
    for _ in range(10):
        played.write(0, at(0))
        played.write(1, at(0))
    played.read(0, at(0, 4), at(0, 8), at(0, 12), at(0, 16))
    found = lines_of(played)
    assert found["write_misses_user"] == {(0, 0): 1, (1, 0): 1}
    assert found["write_backs"] == {(0, 0): 1}
    assert not {"transfers", "upgrades", "invalidations", "probes"} & set(found)


def test_processors_are_kept_in_step_where_counts_depend_on_it() -> None:
    shared = ((1, 2, 2), (2, 4, 4))
    assert Played(Shape(2, 2, SMALL)).interacts()
    assert Played(Shape(2, 2, shared, coherent=False)).interacts()
    assert not Played(Shape(2, 2, SMALL, coherent=False)).interacts()
    assert not Played(Shape(2, 2, ())).interacts()


def test_an_access_to_two_lines_is_one_access_and_touches_both() -> None:
    played = Played(Shape(2, 1, SMALL))
    played.access(0, at(1, 1) - 4, False)
    assert played.counts()["reads_user"] == {(0, 1): 1}
    assert played.counts()["memory_reads"] == {(0, 1): 2}
    assert played.counts()["crossings"] == {(0, 0): 1}


def test_more_is_read_than_the_cache_holds() -> None:
    """Twice over 32 lines in order under LRU, of 16: none of the second round is found."""
    played = Played(Shape(2, 1, SMALL))
    for _ in range(2):
        played.stream(0, at(1), 32 * 8, 8)
    assert played.counts()["reads_user"] == {(0, 1): 512}
    assert played.counts()["read_misses_user"] == {(0, 1): 64}
    for _ in range(3):
        played.stream(1, at(1), 16 * 8, 8)  # these stay
    assert played.counts()["read_misses_user"] == {(0, 1): 64, (1, 1): 16}


def test_lines_a_large_stride_apart_share_a_last_level_cache_evenly() -> None:
    """48 lines, 256 KiB apart, twice: by low bits alone they would share the 8 ways of one set."""
    last = ((1, 4, 2), (1, 4096, 8))
    played = Played(Shape(1, 1, last, node_mib=16))
    for _ in range(2):
        played.read(0, *(line * MIB // 4 for line in range(48)))
    assert played.counts()["read_misses_user"] == {(0, 0): 48}
    # Lines in a row still lie evenly: as many as the cache holds stay.
    played = Played(Shape(1, 1, last, node_mib=16))
    for _ in range(2):
        played.stream(0, 0, 4096 * 8, LINE)
    assert played.counts()["read_misses_user"] == {(0, 0): 4096 * 8}


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Machines with two or three levels, some of them shared, under all kinds of coherence."""
    nodes = draw(st.sampled_from([1, 2, 3, 8]))
    cpus = draw(st.sampled_from([1, 2, 4]))
    sharers = [by for by in (1, 2, 4) if by <= cpus]
    first = draw(st.sampled_from(sharers[:2]))
    ways = st.sampled_from([1, 2, 4])
    levels = [(first, draw(ways), draw(ways))]
    if draw(st.booleans()):
        by = draw(st.sampled_from([by for by in sharers if by >= first]))
        levels.append((by, draw(ways), draw(ways)))
    by = draw(st.sampled_from([by for by in sharers if by >= levels[-1][0]]))
    levels.append((by, draw(st.sampled_from([2, 4, 8])), draw(st.sampled_from([2, 8]))))
    domains = draw(st.sampled_from([(), (1,) * nodes, tuple(1 + k // 2 for k in range(nodes))]))
    owned, exclusive = draw(st.booleans()), draw(st.booleans())
    return Shape(nodes, cpus, tuple(levels), domains, owned=owned, exclusive=exclusive)


@st.composite
def accesses(draw: st.DrawFn) -> tuple[Shape, list[tuple[int, int, bool]]]:
    """A machine, and who accesses what there, reading or writing."""
    shape = draw(shapes())
    cpu = st.integers(0, shape.cpus - 1)
    address = st.builds(at, st.integers(0, shape.nodes - 1), st.integers(0, 24))
    return shape, draw(st.lists(st.tuples(cpu, address, st.booleans()), max_size=150))


@given(accesses())
def test_random_accesses_count_as_the_reference_does(
    drawn: tuple[Shape, list[tuple[int, int, bool]]],
) -> None:
    played, reference = both(*drawn)
    assert played == reference


@given(accesses())
def test_what_is_counted_is_conserved(drawn: tuple[Shape, list[tuple[int, int, bool]]]) -> None:
    shape, steps = drawn
    played = Played(shape)
    for step in steps:
        played.access(*step)
    check_laws(shape, played.counts(), len(steps))


def check_laws(shape: Shape, found: Counts, accesses: int) -> None:
    """What holds whatever the order was."""

    def total(name: str) -> int:
        return sum(found.get(name, {}).values())

    misses = total("read_misses_user") + total("write_misses_user")
    past_last = len(shape.levels)
    assert total("reads_user") + total("writes_user") == accesses
    assert misses == total("memory_reads") + total("transfers")
    assert misses == sum(
        n for (_, level), n in found.get("found", {}).items() if level == past_last
    )
    assert total("downgrades") <= total("transfers")
    assert total("write_backs") + total("downgrades") <= total("writes_user")
    assert total("answers") <= total("probes")


@pytest.mark.parametrize("seed", range(3))
def test_processors_that_run_at_the_same_time_lose_no_count(seed: int) -> None:
    """Eight threads on lines that all of them write; two share each first-level cache."""
    shape = Shape(4, 2, ((2 - seed % 2, 4, 2), (2, 4, 8)))
    played = Played(shape)
    played.storm(20_000, 24, seed)
    found = played.counts()
    check_laws(shape, found, 8 * 20_000)
    assert sum(found["transfers"].values()) > 0
    # Caches are whole afterwards: one processor reads all lines, and finds each where it is then.
    for _ in range(2):
        for node in range(4):
            played.read(0, *(at(node, line) for line in range(4)))
    assert played.counts()["reads_user"][0, 0] >= 8
    check_laws(shape, played.counts(), 8 * 20_000 + 32)


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program under the thread sanitizer."""
    program = tmp_path_factory.mktemp("storm") / "storm"
    sources = [Path(__file__).with_name("hierarchy_harness.cpp"), PLUGIN / "hierarchy.cpp"]
    flags = ["-std=c++20", "-O1", "-g", "-fsanitize=thread", "-pthread", "-DSTORM"]
    subprocess.run(["g++", *flags, f"-I{PLUGIN}", "-o", program, *sources], check=True)
    return program


@pytest.mark.parametrize("exclusive", [False, True])
def test_threads_race_for_nothing_but_numbers_that_are_atomic(
    storm: Path, tmp_path: Path, *, exclusive: bool
) -> None:
    """The same under the thread sanitizer; two threads share each first-level cache, or none."""
    settings = tmp_path / "settings"
    levels = ((2 - exclusive, 4, 2), (2, 8, 12))
    settings.write_text(Shape(4, 2, levels, exclusive=exclusive, owned=exclusive).settings())
    # Without address randomization: it may take addresses that the sanitizer needs.
    done = subprocess.run(["setarch", "-R", storm, settings], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_many_domains_access_the_same_lines_at_the_same_time() -> None:
    """70 domains: a row of the directory is two words long, and each lock may be the first."""
    shape = Shape(70, 1, ((1, 4, 2), (1, 4, 8)))
    played = Played(shape)
    played.storm(2_000, 2, 7)
    check_laws(shape, played.counts(), 70 * 2_000)
    assert sum(played.counts()["invalidations"].values()) > 0
