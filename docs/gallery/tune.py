# %% [markdown]
# # Tune
#
# Which method, which parameters, which weights? `tune` searches, and estimates the result on queries that the search
# has not seen.

# %%
import podium
from podium.data.demo import demo

data = demo(queries=80)
tuning = podium.tune(data, "ndcg@10", ["rrf", "rbc", "borda"], trials=60, seed=1)
print(tuning.conclusion())

# %% [markdown]
# The table compares the tuned configuration with the baseline and with the best single expert, on held-out queries:
# the whole search was repeated in each fold without the queries that measure it.

# %%
tuning

# %% [markdown]
# The means of the trials are optimistic: the best of many configurations was selected on the queries that score it.
# The difference to the held-out value is what a naive search would promise too much.

# %%
optimistic, honest = tuning.trials[0].mean, tuning.tuned
print(f"on the queries it was chosen on {optimistic:.4f}, on held-out queries {honest:.4f}")

# %% [markdown]
# The result is a method like any other. Saved to a file, it can be applied to new queries, here or on the command
# line: `podium apply best.podium new.run`.

# %%
import tempfile
from pathlib import Path

path = Path(tempfile.mkdtemp()) / "best.podium"
podium.save(tuning.best, path)
again = podium.load(path)
assert (
    again.aggregate(data.preferences).scores.tolist()
    == tuning.best.aggregate(data.preferences).scores.tolist()
)
again.name
