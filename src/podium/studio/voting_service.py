"""Voting on a project: the next question of a judge, answers, undo, the live board. Pages and API call these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podium.core.errors import ParameterError
from podium.data.ids import Id
from podium.studio.collected_votes import LiveBoard, compute_live_board, select_own_votes
from podium.studio.question_choice import choose_question
from podium.studio.vote_records import ANSWERS, GRADES, AskedQuestion, CollectionItem, check_judge_name
from podium.studio.vote_store import VoteStore
from podium.studio.workspace import FutureCache, Workspace

BOARDS = 16  # live boards in memory


@dataclass
class VotingService:
    """The votes of all projects of a server."""

    work: Workspace
    _boards: FutureCache = field(default_factory=lambda: FutureCache(BOARDS))

    @property
    def store(self) -> VoteStore:
        """The collected votes."""
        return self.work.votes

    def compute_board(self, project: str) -> LiveBoard:
        """The live board, computed once per vote."""
        collection = self.store.collection(project)
        stamp = self.store.compute_stamp(project)

        def compute() -> LiveBoard:
            record, own = self.work.store.project(project), None
            if record.files or record.kind == "demo":
                # the files, without the collected votes, which are added here
                own = select_own_votes(self.work.read_files(record).result(), collection)
            votes = [v for v in self.store.votes(project) if v.judge not in self.list_excluded(project)]
            return compute_live_board(collection, self.store.item_texts(project), votes, own)

        board: LiveBoard = self._boards.get((project, stamp), compute).result()
        return board

    def list_excluded(self, project: str) -> set[Id]:
        """The judges whose votes are left out."""
        return set(self.store.excluded_annotators(project))

    def find_next_question(self, project: str, judge: str) -> dict[str, Any]:
        """What to show a judge: a question with both items, or why there is none."""
        collection, name = self.store.collection(project), check_judge_name(judge)
        votes = self.store.votes(project)
        own = sum(vote.judge == name for vote in votes)
        answers = list(ANSWERS if collection.kind == "pairs" else GRADES)
        document: dict[str, Any] = {
            "project": project, "judge": name, "kind": collection.kind, "question": collection.question,
            "answers": answers, "own_votes": own, "all_votes": len(votes), "done": "",
            "key": None, "first": None, "second": None,
        }  # fmt: skip
        if collection.closed:
            return document | {"done": "Voting is closed. Thank you."}
        asked = choose_question(self.store, collection, name, votes, self.compute_board(project))
        if asked is None:
            return document | {"done": "You have answered every question. Thank you."}
        return document | self._describe_question(asked)

    def _describe_question(self, asked: AskedQuestion) -> dict[str, Any]:
        texts = self.store.item_texts(asked.project)
        shown = [
            None if item is None else texts.get(item, CollectionItem(item)).to_dict()
            for item in (asked.first, asked.second)
        ]
        return {"key": asked.key, "first": shown[0], "second": shown[1]}

    def answer_question(
        self, project: str, judge: str, key: str, answer: str, seconds: float | None = None
    ) -> bool:
        """Store an answer; False if the question already has one."""
        if self.store.collection(project).closed:
            raise ParameterError("voting is closed")
        return self.store.answer_question(key, answer, judge=judge, project=project, seconds=seconds)

    def undo_last_vote(self, project: str, judge: str) -> dict[str, Any]:
        """Undo a judge's last vote and ask the same question again."""
        undone = self.store.undo_last_vote(project, judge)
        if undone is not None:
            self.store.add_question(project, judge, undone.first, undone.second, undone.gold)
        return self.find_next_question(project, judge) | {"undone": undone is not None}


def find_voting_service(state: Any) -> VotingService:
    """The voting service of a server by the state of its application; made on first use."""
    service: VotingService | None = getattr(state, "voting", None)
    if service is None or service.work is not state.workspace:
        service = state.voting = VotingService(state.workspace)
    return service
