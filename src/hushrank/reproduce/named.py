"""The published results that can be rerun, by name."""

from __future__ import annotations

from collections.abc import Sequence

from hushrank.reproduce.literature import PublishedResult, find_result
from hushrank.reproduce.papers import (
    fedps,
    fedps_table2,
    foltr_es,
    fpdgd,
    study,
    thesis_chapter4,
    thesis_chapter5,
    thesis_chapter6,
)
from hushrank.reproduce.reproduction import Reproduction

PAPERS = {
    "foltr-es": "Federated online learning to rank with evolution strategies (WSDM 2019)",
    "study": "Federated online learning to rank with evolution strategies: a reproducibility study (ECIR 2021)",
    "fpdgd": "Effective and privacy-preserving federated online learning to rank (ICTIR 2021)",
    "thesis": "Effective and secure federated online learning to rank (thesis, 2024)",
    "fedps": "FedPS: a privacy protection enhanced personalized search framework (WWW 2021)",
}
REPRODUCTIONS: dict[str, Reproduction] = {
    r.name: r
    for paper in (foltr_es, fpdgd, study, thesis_chapter4, thesis_chapter5, thesis_chapter6, fedps_table2, fedps)
    for r in paper.REPRODUCTIONS
}


def find_reproduction(name: str) -> tuple[PublishedResult, Reproduction]:
    """A published result that can be rerun, by its name or its alias."""
    result = find_result(name)
    if result.name not in REPRODUCTIONS:
        raise ValueError(f"{result.name} cannot be rerun yet: it needs {', '.join(result.needs) or 'a recipe'}.")
    return result, REPRODUCTIONS[result.name]


def names_to_run(names: Sequence[str]) -> list[str]:
    """Each result once, whatever it was called; all that can be rerun where none is named."""
    return list(dict.fromkeys(find_reproduction(name)[0].name for name in names)) or list(REPRODUCTIONS)
