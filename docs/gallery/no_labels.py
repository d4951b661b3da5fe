# %% [markdown]
# # No labels
#
# There are lists of 25 engines and no judgements. What can be known about the engines, and which fusion is safe?

# %%
import podium
from podium.analysis.experts import diagnose
from podium.data.demo import demo

data = demo(queries=100)
runs = data.preferences
diagnosis = diagnose(runs)
print(diagnosis.headline())
print(*diagnosis.warnings, sep="\n")

# %% [markdown]
# Agreement with the others is the only evidence. It is high for engines that are right, and also for engines that
# share a mistake: the families of this data set have correlated errors.

# %%
agreement = {row.expert: row.agreement for row in diagnosis.rows}
for name in sorted(agreement, key=agreement.get, reverse=True)[:3] + sorted(agreement, key=agreement.get)[:3]:
    print(f"{name:10} {agreement[name]:+.2f}")

# %% [markdown]
# Methods without labels: plain fusion, majority rules, and weights from agreement.

# %%
methods = ["rrf", "copeland", "mc4", "agreement_weighted", "mpm(adherence=True)"]
results = {name: podium.make(name).aggregate(runs) for name in methods}
results["rrf"]

# %% [markdown]
# This data set has judgements after all. They were not used above; they show now which choice was good, and the
# interval shows how sure that is. Weights from agreement help here, where some engines are far worse than others; on
# [real collections](../learning.md) they were not better than equal weights, so judge a few
# queries before relying on them.

# %%
comparison = podium.compare(results, data.labels, "ndcg@10", baseline="rrf")
print(comparison.conclusion())
comparison

# %% [markdown]
# Does agreement predict quality? The rank correlation between the agreement of an engine and its own nDCG@10:

# %%
from podium.evaluate import evaluate, expert_rankings

quality = {e: evaluate(expert_rankings(runs, e), data.labels, "ndcg@10").mean()["ndcg@10"] for e in agreement}
names = list(agreement)
pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
agreeing = sum((agreement[a] - agreement[b]) * (quality[a] - quality[b]) > 0 for a, b in pairs)
tau = 2 * agreeing / len(pairs) - 1
assert 0.2 < tau < 1
print(f"Kendall's tau {tau:.2f}: informative, and not the truth")
