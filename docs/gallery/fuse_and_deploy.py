# %% [markdown]
# # Fuse and deploy
#
# Twenty-five engines answer the same 200 queries. Fuse their lists, measure the gain, and write the configuration
# with which a search engine computes the same ranking.

# %%
import podium
from podium.data.demo import demo

data = demo()
data

# %% [markdown]
# The best single engine is the yardstick: fusion has to beat it to be worth the effort. Choosing the best of 25 on
# the judgements that also measure it flatters the engine, so the comparison is conservative.

# %%
from podium.evaluate import evaluate, expert_rankings

engines = {name: expert_rankings(data.preferences, name) for name in data.preferences.experts.tolist()}
scores = {
    name: evaluate(ranking, data.labels, "ndcg@10").mean()["ndcg@10"] for name, ranking in engines.items()
}
best = max(scores, key=scores.get)
best, round(scores[best], 4)

# %%
methods = ["rrf", "borda", "rbc"]
fused = {name: podium.make(name).aggregate(data.preferences) for name in methods}
comparison = podium.compare({best: engines[best], **fused}, data.labels, "ndcg@10")
comparison

# %% [markdown]
# `deploy` writes the fusion of four of the engines for Qdrant. Qdrant counts from another constant than the textbook,
# so `rrf(k=60)` becomes its `rrf` with k = 61.

# %%
deployment = podium.deploy("rrf(k=60)", "qdrant", experts=["atlas-1", "atlas-2", "beacon-1", "comet-1"])
print(deployment.config)

# %% [markdown]
# `check` ranks all queries by the method and by an emulator of the engine, and counts those with the same order.

# %%
check = deployment.check(data.preferences)
assert check.same == check.queries == 200
print(check.describe())
