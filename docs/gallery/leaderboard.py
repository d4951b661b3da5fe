# %% [markdown]
# # Leaderboard
#
# Rank competitors from pairwise votes. Here ten engines compete, and every query is a judge: in each of six random
# pairs per query, the engine with the higher nDCG@10 gets the vote; equal values give none.

# %%
import random

import podium
from podium.analysis.leaderboard import leaderboard
from podium.data.demo import demo
from podium.evaluate import evaluate, expert_rankings

data = demo()
names = data.preferences.experts.tolist()[:10]
evaluations = {
    name: evaluate(expert_rankings(data.preferences, name), data.labels, "ndcg@10", queries="all")
    for name in names
}
values = {
    name: dict(zip(evaluation.queries.tolist(), evaluation["ndcg@10"].tolist(), strict=True))
    for name, evaluation in evaluations.items()
}

# %%
draw = random.Random(5)
votes = []
for query in data.labels.queries.tolist():
    for _ in range(6):
        first, second = draw.sample(names, 2)
        lead = values[first][query] - values[second][query]
        if lead:
            votes.append((query, first, second) if lead > 0 else (query, second, first))
queries, winners, losers = zip(*votes, strict=True)
preferences = podium.Preferences.from_comparisons(["engines"] * len(votes), queries, winners, losers)
preferences

# %% [markdown]
# Scores are on the Elo scale with confidence intervals. The column of ranks says which places the votes leave open:
# more than one for every engine, so naming a winner would claim too much.

# %%
board = leaderboard(preferences)
assert all(row.rank_low < row.rank_high for row in board.rows)
board

# %% [markdown]
# Does the leaderboard agree with the means that produced the votes? Kendall's tau between the two orders:

# %%
by_mean = sorted(names, key=lambda name: -evaluations[name].mean()["ndcg@10"])
by_votes = [row.item for row in board.rows]
pairs = [(a, b) for i, a in enumerate(by_mean) for b in by_mean[i + 1 :]]
agreeing = sum(by_votes.index(a) < by_votes.index(b) for a, b in pairs)
tau = 2 * agreeing / len(pairs) - 1
assert tau > 0.5
round(tau, 2)

# %% [markdown]
# More votes help most where they are most informative. `stopping` says whether to go on, `next` which pairs to ask
# about.

# %%
print(board.stopping()[1])
[(pair.first, pair.second) for pair in board.next(3)]
