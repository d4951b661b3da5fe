# %% [markdown]
# # Own method
#
# A method is one class. This one sums 1 / rank^power over the engines; defining it registers it.

# %%
from dataclasses import dataclass
from typing import Annotated

import podium
from podium.core.params import Range, Tune
from podium.data.demo import demo
from podium.methods.base import LIST_FORMS, Tags
from podium.methods.positional import Positional


@dataclass(kw_only=True, eq=False, repr=False)
class PowerOfRank(Positional):
    """Sum of 1 / rank^power over experts.

    >>> podium.make("power_of_rank(power=2)")
    power_of_rank(power=2)
    """

    name = "power_of_rank"
    tags = Tags(accepts=LIST_FORMS, additive=True)
    power: Annotated[float, Range(0.1, 10), Tune(0.1, 3), "how much faster early ranks count"] = 1.0

    def _points(self, rank):
        return rank**-self.power


# %% [markdown]
# The checks that all built-in methods pass: item names and the order of rows do not matter, ties are ties,
# duplicates and bad input are refused, and many more. A violated rule raises an error.

# %%
from podium.testing import checks

checks.check_all(PowerOfRank)

# %% [markdown]
# The method works wherever a method is named: in `fuse`, in explanations, in comparisons and in tuning.

# %%
podium.fuse([["a", "b"], ["b", "c"], ["b"]], "power_of_rank(power=2)")

# %%
data = demo(queries=60)
podium.explain("power_of_rank", data.preferences, "q001")

# %% [markdown]
# `Tune` in the annotation of the parameter declares where to search it.

# %%
tuning = podium.tune(data, "ndcg@10", ["power_of_rank", "rrf"], weights=False, trials=30, seed=1)
print(tuning.conclusion())
tuning
