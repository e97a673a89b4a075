"""Structs of the compiled kernel as plain Python values, and its histograms' buckets in Python."""

from numatwin.sim._kernel import OsDomain, OsSetup, ProcessorSetup
from numatwin.sim.kernel.histogram import Histogram, bucket_of
from numatwin.sim.kernel.plain_fields import plain


def test_vectors_are_read_once_structs_within_too() -> None:
    domain = OsDomain(level=1, groups=[[0], [1]])
    setup = OsSetup(core=[0, 1], domains=[domain, domain], tick_ps=4)
    found = plain(setup)
    assert setup.core is not setup.core  # what plain() saves
    assert found.core is found.core
    assert (found.core, found.tick_ps) == ([0, 1], 4)
    assert [one.groups for one in found.domains] == [[[0], [1]]] * 2
    assert found.domains[0].groups is found.domains[0].groups
    assert plain(found) is found


def test_a_struct_is_copied_with_other_values() -> None:
    setup = ProcessorSetup(count=2, slice_ps=3, homes=(0, -1))
    other = setup.replaced(slice_ps=4)
    assert (setup.slice_ps, other.slice_ps, other.homes) == (3, 4, [0, -1])
    assert setup != other
    assert setup == other.replaced(slice_ps=3)


def test_values_fall_into_the_buckets_of_the_kernel() -> None:
    values_ps = [0, 1, 127, 128, 255, 256, 257, 511, 512, 10**6, 10**12, 2**62]
    found = Histogram.of_values(values_ps)
    assert (found.count, found.total) == (len(values_ps), sum(values_ps) / 1e3)
    for value_ps in values_ps:
        low_ns, high_ns = found.bounds(bucket_of(value_ps))
        assert low_ns <= value_ps / 1e3 < high_ns


def test_the_values_since_then() -> None:
    early, late = [5, 300], [5, 300, 300, 9_000]
    since = Histogram.of_values(late).since(Histogram.of_values(early))
    assert (since.count, since.total) == (2, 9.3)
    assert since.counts[[bucket_of(5), bucket_of(300), bucket_of(9_000)]].tolist() == [0, 1, 1]
