# %% [markdown]
# # Crowd
#
# Ten workers compare items: six are careful, two guess, two answer in reverse. The simulation knows who is who;
# the analysis does not.

# %%
import podium
from podium.analysis.annotators import annotators
from podium.testing.crowds import annotators as list_workers
from podium.testing.crowds import simulate

workers = list_workers(good=6, random=2, malicious=2)
crowd = simulate(workers, queries=20, items=12, judgements=12, seed=1)
crowd.preferences

# %% [markdown]
# Quality is the probability that a worker judges a pair as the consensus of the others does. A verdict requires an
# interval that excludes the other verdicts; nobody is accused on thin evidence.

# %%
report = annotators(crowd.preferences)
report

# %%
verdicts = {row.annotator: row.verdict for row in report.rows}
assert {name for name, verdict in verdicts.items() if verdict == "malicious"} == {
    "malicious 1",
    "malicious 2",
}
assert {name for name, verdict in verdicts.items() if verdict == "random"} == {"random 1", "random 2"}
print(*report.lines, sep="\n")

# %% [markdown]
# Methods that estimate the quality of workers use the reversed answers as evidence; a plain majority counts them as
# votes. The metric is the share of item pairs in the right order, by the truth of the simulation.

# %%
methods = ["crowd_bt", "dawid_skene", "crowdagg", "net_votes", "majority"]
results = {name: podium.make(name).aggregate(crowd.preferences) for name in methods}
comparison = podium.compare(results, crowd.labels, "pairs", baseline="majority")
means = {row.name: row.mean for row in comparison.rows}
assert max(means, key=means.get) == "crowd_bt"
comparison
