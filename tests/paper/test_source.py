"""Numbers of theorems, equations, figures and sections, by hand."""

from __future__ import annotations

import json

from paper.register import ARTEFACTS
from paper.source import FILE, cite, numbers

TEX = r"""
\newtheorem{theorem}{Theorem}[section]
\newtheorem{lemma}[theorem]{Lemma}
\section{One}\label{one}
\begin{equation}\label{eq1} a \end{equation}
\section{Two}
% \section{Not one}
\subsection{A}\label{a}
\begin{align} a &= b \notag \\ &= c \label{eq2} \\ d &= e \label{eq3} \end{align}
\begin{theorem}\label{th:x} \begin{equation} \label{eq4} x \end{equation} \end{theorem}
\begin{lemma}\label{lem:y} y \end{lemma}
\begin{figure*} \caption{F} \label{fig:f} \end{figure*}
\section*{Thanks}
\appendix
\section{Proofs}\label{proofs}
\begin{theorem} \end{theorem}
\begin{theorem}\label{th:z} z \end{theorem}
\begin{table} \caption{T} \label{tab:t} \end{table}
"""


def test_numbers_are_those_that_latex_gives() -> None:
    assert numbers(TEX) == {
        "one": "1",
        "eq1": "1",
        "a": "2.1",
        "eq2": "2",
        "eq3": "3",
        "th:x": "2.1",
        "eq4": "4",
        "lem:y": "2.2",
        "fig:f": "1",
        "proofs": "A",
        "th:z": "A.2",
        "tab:t": "1",
    }


def test_a_text_cites_number_and_label() -> None:
    found = cite("Th. sigma in Th. hlip, Fig. main; Fig. nosuch, the theorems")
    assert found == "Th. 4.2 (sigma) in Th. 4.1 (hlip), Fig. 2 (main); Fig. nosuch, the theorems"


def test_every_label_of_the_register_has_a_number() -> None:
    assert len(json.loads(FILE.read_text(encoding="utf-8"))) > 40
    sources = [a.source for a in ARTEFACTS.values() if a.source.startswith(("Fig.", "Table"))]
    assert len(sources) > 8 and all(cite(source) != source for source in sources)
