"""The messages of the commit protocols, by type."""

from itertools import pairwise

# In order, and whose thread sends and receives each: client's (c), server's (s),
# nobody's (-), as an adapter serves one-sided verbs alone. The client's part of a verb is one
# message: that includes looking for its completion.
TWO_PHASE_SIDES = {
    "snapshot-request": "cs",  # client → timestamp service: which snapshot may I read?
    "snapshot": "sc",  # its answer
    "read": "cs",  # client → RM: one record
    "record": "sc",  # RM → client: its payload
    "commit-request": "cs",  # (1) client → TM: the records to write aboard
    "timestamp-request": "ss",  # (2) TM → timestamp service
    "timestamp": "ss",  # (2) its answer: the CID
    "prepare": "ss",  # (3) TM → RM: check and lock these records
    "vote": "ss",  # (3) its answer
    "install": "ss",  # (4) TM → RM: new versions aboard; install and unlock
    "installed": "ss",  # (4) its answer
    "rollback": "ss",  # TM → RM that voted yes, where another voted no: unlock
    "finished": "ss",  # (5) TM → timestamp service: installed (or rolled back), CID done with
    "outcome": "sc",  # (6) TM → client
}
# Of one-sided ones each answer stands behind its request.
ONE_SIDED_SIDES = {
    "snapshot-read": "c-",  # READ of the highest committed timestamp, and what comes back
    "snapshot-data": "--",
    "read": "c-",  # READ of a record block, and what comes back
    "record": "--",
    "cas": "c-",  # CAS of a block's first word: validate and lock
    "cas-result": "--",
    "write": "c-",  # WRITE of a block: install and unlock, or insert
    "write-done": "--",
    "unlock": "c-",  # WRITE (with leases: CAS) of the first word after an abort
    "unlock-done": "--",
    "bit": "c-",  # WRITE of the timestamp's bit; its answer is polled where it is signaled
    "bit-done": "--",
}
# Those that the remedies add; all are needed where one of the two remedies is on.
REMEDY_SIDES = {
    "claim": "c-",  # CAS of the timestamp's claim bit
    "claim-result": "--",
    "break": "c-",  # CAS of a block's first word: frees a lock whose owner is fenced
    "break-result": "--",
    "complaint": "cs",  # SEND to the timestamp server: this timestamp, or this owner, holds us up
    "complaint-done": "sc",
    "revoke": "ss",  # timestamp server → storage server: refuse the owner from now on
    "revoked": "ss",
}
TWO_PHASE_MESSAGES = tuple(TWO_PHASE_SIDES)
ONE_SIDED_MESSAGES, REMEDY_MESSAGES = tuple(ONE_SIDED_SIDES), tuple(REMEDY_SIDES)
_VERBS = ONE_SIDED_SIDES | REMEDY_SIDES
ANSWERS = {
    request: answer for request, answer in pairwise(_VERBS) if _VERBS[request].startswith("c-")
}
"""Of one-sided requests that take something back."""
