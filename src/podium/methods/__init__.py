"""Methods that combine many rankings into one; one file per family. Classes are imported on first use."""

from typing import TYPE_CHECKING

from podium.core import registry

IMPORTED_FIRST = ("podium.methods.positional",)  # the default method is found without importing the others

# for type checkers, which cannot ask the registry; a test compares the two
if TYPE_CHECKING:
    from podium.methods.agreement_fusion import AgreementWeightedFusion
    from podium.methods.choice import BradleyTerry, Elo, RankCentrality, ThurstoneMosteller
    from podium.methods.crowd.crowd_bt import CrowdBt
    from podium.methods.crowd.crowdagg import CrowdAgg
    from podium.methods.crowd.dawid_skene import DawidSkene
    from podium.methods.crowd.em_elo import EmElo
    from podium.methods.crowd.label_models import GladModel, MaceModel, OneCoinDawidSkene
    from podium.methods.crowd.net_votes import NetVotes
    from podium.methods.dialects.elasticsearch import ElasticsearchLinear, ElasticsearchRrf
    from podium.methods.dialects.haystack import HaystackDbsf, HaystackRrf
    from podium.methods.dialects.lancedb import LanceDbRrf
    from podium.methods.dialects.langchain import LangChainRrf
    from podium.methods.dialects.llamaindex import LlamaIndexDbsf, LlamaIndexRrf
    from podium.methods.dialects.milvus import MilvusRrf, MilvusWeightedSum
    from podium.methods.dialects.opensearch import OpenSearchNormalization, OpenSearchRrf
    from podium.methods.dialects.pyterrier import PyTerrierRrf
    from podium.methods.dialects.qdrant import QdrantDbsf, QdrantFormula, QdrantRrf
    from podium.methods.dialects.vespa import VespaLinear, VespaRrf
    from podium.methods.dialects.weaviate import WeaviateRankedFusion, WeaviateRelativeScoreFusion
    from podium.methods.elections import InstantRunoff, MajorityJudgment, ScoringRule
    from podium.methods.feature.labelled_features_aggregator import LabelledFeaturesAggregator
    from podium.methods.feature.retargeting import MonotoneRetargeting
    from podium.methods.footrule import OptimalFootrule
    from podium.methods.hodge import HodgeRank
    from podium.methods.kemeny import Kemeny
    from podium.methods.learned.crf import CrfAggregator
    from podium.methods.learned.fused import FusedAggregator
    from podium.methods.learned.position_probability import PositionProbabilityFusion
    from podium.methods.learned.query_weighted_fusion import QueryWeightedFusion
    from podium.methods.learned.stack import StackAggregator
    from podium.methods.learned.svd_features import SvdAggregator
    from podium.methods.learned.weighted_cps import WeightedCps
    from podium.methods.learned.weighted_markov import WeightedMarkov
    from podium.methods.learned.weighted_rules import WeightedBorda, WeightedKemeny, WeightedRrf
    from podium.methods.majority import (
        CondorcetFuse,
        Copeland,
        GreedyOrder,
        MajorityVote,
        Minimax,
        RankedPairs,
        Schulze,
        SplitCycle,
    )
    from podium.methods.markov import MC1, MC2, MC3, MC4
    from podium.methods.matrix import Mpm, Svp
    from podium.methods.order_statistics import GeometricMeanRank, RobustRankAggregation, StuartStatistic
    from podium.methods.positional import (
        Borda,
        InverseSquareRank,
        LogInverseSquareRank,
        MeanRank,
        MedianRank,
        RankBiasedCentroids,
        ReciprocalRankFusion,
    )
    from podium.methods.quality_fusion import QualityWeightedFusion
    from podium.methods.rankings import Mallows, PlackettLuce
    from podium.methods.scores import (
        CombAnz,
        CombMax,
        CombMed,
        CombMin,
        CombMnz,
        CombSum,
        DistributionBasedFusion,
        RelativeScoreFusion,
    )
    from podium.methods.stagewise import Cps
    from podium.methods.win_rate import WinRate

__all__ = [
    "MC1",
    "MC2",
    "MC3",
    "MC4",
    "AgreementWeightedFusion",
    "Borda",
    "BradleyTerry",
    "CombAnz",
    "CombMax",
    "CombMed",
    "CombMin",
    "CombMnz",
    "CombSum",
    "CondorcetFuse",
    "Copeland",
    "Cps",
    "CrfAggregator",
    "CrowdAgg",
    "CrowdBt",
    "DawidSkene",
    "DistributionBasedFusion",
    "ElasticsearchLinear",
    "ElasticsearchRrf",
    "Elo",
    "EmElo",
    "FusedAggregator",
    "GeometricMeanRank",
    "GladModel",
    "GreedyOrder",
    "HaystackDbsf",
    "HaystackRrf",
    "HodgeRank",
    "InstantRunoff",
    "InverseSquareRank",
    "Kemeny",
    "LabelledFeaturesAggregator",
    "LanceDbRrf",
    "LangChainRrf",
    "LlamaIndexDbsf",
    "LlamaIndexRrf",
    "LogInverseSquareRank",
    "MaceModel",
    "MajorityJudgment",
    "MajorityVote",
    "Mallows",
    "MeanRank",
    "MedianRank",
    "MilvusRrf",
    "MilvusWeightedSum",
    "Minimax",
    "MonotoneRetargeting",
    "Mpm",
    "NetVotes",
    "OneCoinDawidSkene",
    "OpenSearchNormalization",
    "OpenSearchRrf",
    "OptimalFootrule",
    "PlackettLuce",
    "PositionProbabilityFusion",
    "PyTerrierRrf",
    "QdrantDbsf",
    "QdrantFormula",
    "QdrantRrf",
    "QualityWeightedFusion",
    "QueryWeightedFusion",
    "RankBiasedCentroids",
    "RankCentrality",
    "RankedPairs",
    "ReciprocalRankFusion",
    "RelativeScoreFusion",
    "RobustRankAggregation",
    "Schulze",
    "ScoringRule",
    "SplitCycle",
    "StackAggregator",
    "StuartStatistic",
    "SvdAggregator",
    "Svp",
    "ThurstoneMosteller",
    "VespaLinear",
    "VespaRrf",
    "WeaviateRankedFusion",
    "WeaviateRelativeScoreFusion",
    "WeightedBorda",
    "WeightedCps",
    "WeightedKemeny",
    "WeightedMarkov",
    "WeightedRrf",
    "WinRate",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return registry.aggregators.get_class(name, __name__)
