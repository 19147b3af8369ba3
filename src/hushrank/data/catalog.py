"""Public data sets by name: what they hold, how the published runs scaled them, and how to get them.

None may be passed on, so none is downloaded: each entry says where it is had and the loader says where to put it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One public data set."""

    title: str
    n_queries: int  # in the whole set, each counted once
    n_documents: int
    n_features: int
    n_grades: int
    n_folds: int
    normalise: str  # as in the published runs
    licence: str  # one sentence
    how_to_get: str  # one sentence


_LETOR = "Get the supervised ranking archive of LETOR 4.0 from Microsoft Research and unpack it."
_MSLR = "Get the archive from Microsoft Research (Learning to Rank Datasets) and unpack it."
_RESEARCH = "For research, by Microsoft Research; not to be passed on."

CATALOG: Mapping[str, CatalogEntry] = MappingProxyType(
    {
        "mq2007": CatalogEntry("LETOR 4.0 MQ2007", 1_692, 69_623, 46, 3, 5, "none", _RESEARCH, _LETOR),
        "mq2008": CatalogEntry("LETOR 4.0 MQ2008", 784, 15_211, 46, 3, 5, "none", _RESEARCH, _LETOR),
        "mslr-web10k": CatalogEntry("MSLR-WEB10K", 10_000, 1_200_192, 136, 5, 5, "query-minmax", _RESEARCH, _MSLR),
        "mslr-web30k": CatalogEntry("MSLR-WEB30K", 31_531, 3_771_125, 136, 5, 5, "query-minmax", _RESEARCH, _MSLR),
        "yahoo": CatalogEntry(
            "Yahoo! Learning to Rank Challenge, set 1",
            29_921,
            709_877,
            700,
            5,
            1,
            "query-minmax",
            "For research at universities that sign Yahoo's agreement; not to be passed on.",
            "Ask Yahoo Webscope for data set C14B and keep the three files of set1 in one directory.",
        ),
        "istella-s": CatalogEntry(
            "Istella-S LETOR",
            33_018,
            3_408_630,
            220,
            5,
            1,
            "query-minmax",
            "For research, under the Istella LETOR licence; not to be passed on.",
            "Get istella-s-letor.tar.gz from the Istella LETOR page and unpack it.",
        ),
    }
)
