"""The rooms whose keys make a recipe: one line for each, which is also its table in a recipe file."""

from __future__ import annotations

from hushrank.aggregation.keys import AggregationKeys, ServerStepKeys
from hushrank.attacks.keys import AttackKeys
from hushrank.clicks.keys import ClickKeys
from hushrank.data.keys import DataKeys
from hushrank.federation.keys import EvolutionKeys, PopulationKeys
from hushrank.keys import Key, keys_of
from hushrank.learners.keys import LearnerKeys
from hushrank.partitions.keys import PartitionKeys
from hushrank.personal.keys import PersonalKeys
from hushrank.privacy.keys import PrivacyKeys
from hushrank.rankers.keys import RankerKeys
from hushrank.recipes.training import TrainingKeys
from hushrank.remedies.keys import RemedyKeys
from hushrank.unlearning.keys import UnlearningKeys

ROOMS: dict[str, type] = {
    "data": DataKeys,
    "clicks": ClickKeys,
    "population": PopulationKeys,
    "partition": PartitionKeys,
    "training": TrainingKeys,
    "ranker": RankerKeys,
    "learner": LearnerKeys,
    "remedy": RemedyKeys,
    "evolution": EvolutionKeys,
    "aggregation": AggregationKeys,
    "server": ServerStepKeys,
    "attack": AttackKeys,
    "privacy": PrivacyKeys,
    "unlearning": UnlearningKeys,
    "personal": PersonalKeys,
}
ROOM_KEYS: dict[str, Key] = {name: declared for room in ROOMS.values() for name, declared in keys_of(room).items()}
# {key: its declaration} of the keys that name a registered method, which may have keys of its own
CHOOSERS: dict[str, Key] = {name: declared for name, declared in ROOM_KEYS.items() if declared.methods is not None}
