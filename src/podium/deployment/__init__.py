"""From a method to an engine's own configuration, checked on the user's lists."""

from podium.deployment.copying_cost import CopyingCost, CopyingRow, measure_copying_cost
from podium.deployment.deploy_method import Deployment, deploy
from podium.deployment.order_check import OrderCheck, OrderDifference, compare_orders

__all__ = [
    "CopyingCost",
    "CopyingRow",
    "Deployment",
    "OrderCheck",
    "OrderDifference",
    "compare_orders",
    "deploy",
    "measure_copying_cost",
]
