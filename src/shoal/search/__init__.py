"""Search over workflows: which order of repairs, when trained to be followed, keeps the network safest."""

from shoal.search.config import SearchConfig
from shoal.search.search import WorkflowSearch

__all__ = ["SearchConfig", "WorkflowSearch"]
