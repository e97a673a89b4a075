"""The summary at the top of a report: what ran, how fast, and what limits it."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ..sim.control import NO_POLICY
from ..sim.planes.outcome import ResourceUse, Why
from ..sim.run.comparison import noise_of, settled
from ..sim.run.limit import limit_in_words, limits, together
from ..sim.run.real_planes import NATIVE
from ..sim.run.record import Record
from ..sim.run.recovery import Recovery, recoveries_together, share_levels
from .bars import GAIN_MIN
from .decisions import decisions, regret_texts, verdict
from .intervals import between, differs_by_chance
from .runs import Run, moved_bytes, operations_of, recoveries_of
from .traffic import traffic_answer
from .words import (
    all_of,
    count,
    listing,
    percent,
    plain,
    plural,
    rate,
    seconds,
    si,
    signed_percent,
    some,
)

NARROW = 0.005  # a range of less than this is none


def answer(record: Record) -> Markup:
    """One paragraph on one run."""
    if record.traffic:
        return traffic_answer(record)
    sentences = [_what_ran(record), _doubts(record)]
    sentences += [
        _limit(names, why, record.resources)
        for names, why in together(limits(record.why, record.throughput))
    ]
    main = next(iter(record.throughput), None)
    if main is not None:
        sentences.append(_changes(main, recoveries_together([record], main)[0]))
    moved = moved_bytes(record)
    if moved is not None:
        transfers = sum(event.kind == "transfer" for event in record.control_events)
        text = "Balancing copied {} in {}."
        sentences.append(Markup(text).format(si(moved, "B"), count(transfers, "transfer")))
    return Markup(" ").join(sentence for sentence in sentences if sentence)


def comparing_answer(runs: Sequence[Run]) -> Markup:
    """One paragraph on several runs of one scenario, by their first operation."""
    operation = operations_of(runs)[0] if operations_of(runs) else None
    able = [run for run in runs if operation in run.record.throughput]
    if operation is None or len(able) < 2:
        return Markup("{} of one scenario, which share no operation.").format(
            count(len(runs), "run")
        )
    short = [run.label for run in able if not settled([run.record])]
    if short:
        text = "Which does most is open, as {} did not run for long enough to settle."
        return Markup(text).format(listing(short))
    best = max(able, key=lambda run: run.record.throughput[operation])
    worst = min(able, key=lambda run: run.record.throughput[operation])
    high, low = best.record.throughput[operation], worst.record.throughput[operation]
    sentences = []
    by_chance = best is not worst and differs_by_chance(worst.record, best.record, operation)
    if len(able) == 2 and (best.record.plane == NATIVE) != (worst.record.plane == NATIVE):
        # A prediction, and what it is of: no rivals.
        real, predicted = (best, worst) if best.record.plane == NATIVE else (worst, best)
        predicted_rate, real_rate = (run.record.throughput[operation] for run in (predicted, real))
        text = "{} predicts <strong>{}</strong> on average, and the real engine does "
        text += "<strong>{}</strong>, {} times as many{}."
        rates = rate(predicted_rate, operation), rate(real_rate, operation)
        times = plain(real_rate / predicted_rate) if predicted_rate else "∞"
        chance = ", which does not exceed chance" if by_chance else ""
        sentences.append(Markup(text).format(predicted.label, *rates, times, chance))
        if noise := noise_of([predicted.record]):
            text = "The facts that it is predicted from were measured on a {}."
            sentences.append(Markup(text).format(noise))
    elif by_chance:
        text = "No difference between the {} exceeds chance: {} at least, {} at most."
        rates = rate(low, operation), rate(high, operation)
        sentences.append(Markup(text).format(count(len(able), "run"), *rates))
    elif high < 1.005 * low:
        text = "{} do about the same: {} on average."
        sentences.append(Markup(text).format(all_of(len(able), "run"), rate(high, operation)))
    else:
        text = "Of {}, <strong>{}</strong> does most: <strong>{}</strong> on average"
        sentences.append(
            Markup(text).format(count(len(able), "run"), best.label, rate(high, operation))
        )
        times = f"{plain(high / low)} times as many as" if low > 0 else "against none of"
        sentences[-1] += Markup(", {} {}.").format(times, worst.label)
    sentences = [*_probability(able, best, operation), *sentences]
    found = recoveries_of(able, operation)
    if share_levels(list(found.values())):
        kinds = {run.label: {event.kind for event in run.record.control_events} for run in able}
        sentences += _drops(found, [label for label in kinds if "balance" in kinds[label]])
    return Markup(" ").join(sentences)


def _probability(runs: Sequence[Run], best: Run, operation: str) -> list[Markup]:
    """How sure it is that the best run does more than its next rival, and what choosing it costs:
    first of all, where facts were drawn.
    """
    rivals = [run for run in runs if run is not best]
    rival = max(rivals, key=lambda run: run.record.throughput[operation])
    pair = (rival, best)
    found = decisions([run.record for run in pair])
    rows = [row for row in found if row["operation"] == operation and row["prediction"] is None]
    names = [run.label for run in pair]
    text = Markup("{}: <strong>{}</strong>. {}")
    return [
        text.format(
            _sentence_case(plural(operation)),
            verdict(row, names),
            " ".join(regret_texts(row, names)),
        )
        for row in rows
    ]


def _what_ran(record: Record) -> Markup:
    machine = record.machine
    nodes = machine.get("nodes") or ()
    threads = sum(len(node.get("cpus") or ()) for node in nodes)
    title = str(machine.get("title") or machine.get("name") or "the machine")
    sizes = [count(len(nodes), "node"), *([count(threads, "hardware thread")] if threads else [])]
    # Titles of imported machines say how many nodes they have.
    size = ", ".join(one for one in sizes if one not in title)
    done = [
        _rate(record, name) if name in record.throughput else Markup.escape(name)
        for name in some(record.throughput)
    ]
    text = "On {}{}{}, the engine does {}{}."
    if record.plane == NATIVE:
        cpus = (record.provenance.get("host") or {}).get("cpus")
        host = f"a real host of {count(cpus, 'CPU')}" if isinstance(cpus, int) else "a real host"
        text = f"On {host}, in place of {{}}{{}}{{}}, the engine does {{}}{{}}."
    return Markup(text).format(
        title,
        f" ({size})" if size else "",
        _under(record.policies),
        _listing(done) if done else "nothing",
        Markup(" on average over {}").format(seconds(record.horizon_s)),
    )


def _rate(record: Record, name: str) -> Markup:
    text = Markup("<strong>{}</strong>").format(rate(record.throughput[name], name))
    bounds = between(record, "/s", "throughput", name)
    return text + Markup(" ({})").format(bounds) if bounds else text


def _under(policies: Mapping[str, str]) -> str:
    """The policies in force; families whose policy is none do nothing and are left out."""
    found = [
        f"{family}={name}" if len(policies) > 1 else name
        for family, name in policies.items()
        if name != NO_POLICY
    ]
    if found:
        return f", under the {'policy' if len(found) == 1 else 'policies'} {listing(found)}"
    if len(policies) == 1:
        family = next(iter(policies))
        return f", without {'an' if family[0] in 'aeiou' else 'a'} {family} policy"
    return ", without policies" if policies else ""


def _doubts(record: Record) -> Markup:
    """Why the answer may be off as far as its intervals say."""
    if not settled([record]):
        return Markup("The run was too short to settle: a longer one may do much more or less.")
    found = record.uncertainty
    bounds = found.get("throughput", {}).values()
    if not any(high > (1.0 + NARROW) * low for low, high in bounds):
        return Markup("")
    said = Markup("{} facts and assumptions may be off").format(len(found["doubts"]))
    most = [
        Markup("{} ({:+.0%} to {:+.0%})").format(one["name"], one["low"], one["high"])
        for one in found["most"]
    ]
    said += Markup(", most of all {}").format(_listing(most)) if most else ""
    of_throughput = (
        one for one in found.get("model", ()) if one["figure"].startswith("throughput.")
    )
    factor = max((one["factor"] for one in of_throughput), default=1.0)
    said += Markup("; the model itself may be off by ×{:.2f}").format(factor)
    if later := found.get("left_out"):
        said += Markup("; what policies of {} change later is left out").format(listing(later))
    return said + "."


def _limit(operations: Sequence[str], why: Why, resources: Sequence[ResourceUse]) -> Markup:
    text = Markup("{} are limited by <strong>{}</strong>").format(
        _sentence_case(listing(some(map(plural, operations)))), limit_in_words(why, resources)
    )
    helpful = [gain for gain in why.gains if gain.gain_per_10pct >= GAIN_MIN]
    if not helpful:
        if not why.gains:
            return text + "."
        return text + "; 10% more of any single resource would bring next to nothing."
    best = helpful[0]
    return text + Markup("; 10% more <strong>{}</strong> would bring {}{}.").format(
        best.resource,
        Markup("<strong>{}</strong>").format(signed_percent(best.gain_per_10pct)),
        Markup(", the next best, {}, {}").format(
            helpful[1].resource, signed_percent(helpful[1].gain_per_10pct)
        )
        if len(helpful) > 1
        else "",
    )


def _changes(operation: str, found: Sequence[Recovery]) -> Markup:
    if not found:
        return Markup("")
    depth = max((one.depth or 0.0) for one in found)
    unsettled = sum(not one.settled for one in found)
    text = Markup("The workload changes {}: ").format(
        "once" if len(found) == 1 else f"{len(found)} times"
    )
    if depth < 0.005 and not unsettled:
        return text + Markup("{} never fall below the rate they then settle at.").format(
            plural(operation)
        )
    known = [one.recovery_s for one in found if one.recovery_s is not None]
    text += Markup("{} fall by up to {} below the rate they then {} at").format(
        plural(operation), percent(depth), "end" if unsettled else "settle"
    )
    missed = len(found) - len(known) - unsettled
    if known:
        text += Markup(", and are within 5% of it after {} at most").format(seconds(max(known)))
        text += f"; after {missed} of the changes they are not" if missed else ""
    elif missed:
        text += ", and are not within 5% of it again before the next change"
    return text + "." + (f" {_unsettled(unsettled, len(found))}" if unsettled else "")


def _unsettled(changes: int, of: int) -> str:
    """That so many of the changes are not recovered from when the time looked at ends."""
    if of == 1:
        return "Not recovered by the end, as throughput still changes then."
    return (
        f"Not recovered after {changes} of the {of} changes, as throughput still changes when the "
        "next one comes or the run ends."
    )


def _drops(found: Mapping[str, Sequence[Recovery]], balanced: Sequence[str]) -> list[Markup]:
    """Who falls least, and who is back soonest; depths are held against one common level.

    Without balancing there is no dip on top of the loss that stays: where at least two runs
    balance, only these are ranked.
    """
    ranked = [name for name in balanced if name in found]
    ranked = ranked if len(ranked) > 1 else list(found)
    depths = {name: max(one.depth or 0.0 for one in found[name]) for name in ranked}
    least = min(depths, key=depths.__getitem__)
    deepest = max(depths, key=depths.__getitem__)
    sentences = []
    if depths[deepest] - depths[least] >= 0.005:
        text = (
            "When the workload changes, <strong>{}</strong> falls least{}, {} below the best level "
            "at worst ({}: {})."
        )
        sentences.append(
            Markup(text).format(
                least,
                " of those that balance their load" if len(ranked) < len(found) else "",
                percent(depths[least]),
                deepest,
                percent(depths[deepest]),
            )
        )
    times = {
        name: [one.recovery_s for one in ones if one.recovery_s is not None]
        for name, ones in found.items()
    }
    whole = {n: sum(t) / len(t) for n, t in times.items() if len(t) == len(found[n])}
    never = [name for name, known in times.items() if not known]
    if whole:
        time = seconds(min(whole.values()))
        soonest = [name for name, mean_s in whole.items() if seconds(mean_s) == time]
        text = "Soonest back: <strong>{}</strong>, after {} on average."
        sentences.append(Markup(text).format(listing(soonest), time))
    unsettled = max(sum(not one.settled for one in ones) for ones in found.values())
    if unsettled:
        sentences.append(Markup(_unsettled(unsettled, max(map(len, found.values())))))
    elif never:
        once = all(len(ones) == 1 for ones in found.values())
        text = "Never back to the best level before the next change: {}."
        text = "Not back at the best level by the end: {}." if once else text
        sentences.append(Markup(text).format(listing(never)))
    return sentences


def _listing(parts: Sequence[Markup]) -> Markup:
    *most, last = parts
    return Markup(", ").join(most) + " and " + last if most else last


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]
