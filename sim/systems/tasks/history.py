"""Rows of a trace, the same from the compiled model and from the reference: (time in ps, what, …).

| what | a | b | c | d |
| --- | --- | --- | --- | --- |
| ``ASKED`` | query | client, -1: an open one | its number | |
| ``MADE`` | task | stage | part, -1: none | node whose queue it belongs to, -1: its part moves |
| ``BEGAN`` | task | worker | node whose queue it came from | whether it was stolen |
| ``ENDED`` | task | worker | class | |
| ``ANSWERED`` | query | client | its number | latency in ps |
| ``WOKEN`` | worker | | | |
| ``COPYING`` | copy | pages | node it comes from, -1: all | node it goes to |
| ``ARRIVED`` | copy | | | |
| ``ON`` | worker | processor that it runs on from now on, where threads are moved | | |

Queries, tasks and parts are numbered as they come; stages by position, all queries' in one row.
"""

Row = tuple[int, int, int, int, int, int]

ASKED, MADE, BEGAN, ENDED, ANSWERED, WOKEN, COPYING, ARRIVED, ON = range(9)

# Names of the streams of random numbers: of closed clients, by number, and of open ones.
CLIENT_MIX, CLIENT_THINK = "client {} query", "client {} think"
ARRIVALS, ARRIVAL_MIX = "arrivals", "arrivals query"
