"""NeMo-Gym: a resources server. Its tool `submit` judges a kernel; /verify gives the session's reward.

    kernelmill_resources_server:                     # a server of NeMo-Gym's configuration
      resources_servers:
        kernelmill: {entrypoint: app.py}             # app.py: from kernelmill.adapters.nemo_gym import main; main()

The evaluation server is that of KERNELMILL_URL. A row of the data names its task: rows() makes them of all tasks.
"""

import asyncio
from typing import Any, Dict, List, Optional

from fastapi import FastAPI, HTTPException, Request
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import BaseModel, Field

from ..client import Client
from ..environment import Environment, MachineFault, connect

TOOL = {
    "type": "function",
    "name": "submit",
    "description": "Compiles, checks and times a kernel.",
    "strict": True,
    "parameters": {
        "type": "object",
        "required": ["answer"],
        "additionalProperties": False,
        "properties": {
            "answer": {"type": "string", "description": "The whole answer, with the kernel in a fenced block of code."}
        },
    },
}


class KernelSeedRequest(BaseSeedSessionRequest):
    task: str
    max_turns: int = 4


class KernelVerifyRequest(BaseVerifyRequest):
    task: str
    max_turns: int = 4


class SubmitRequest(BaseModel):
    answer: str


class SubmitResponse(BaseModel):
    feedback: str
    done: bool


def text_of(response: Any) -> str:
    """The last message of a response."""
    said = [x for x in response.output if x.type == "message"]
    return "".join(x.text for x in said[-1].content if x.type == "output_text") if said else ""


class KernelResourcesServer(SimpleResourcesServer):
    """A machine's fault is answered with 503, which NeMo-Gym retries: it never becomes a reward."""

    config: BaseResourcesServerConfig
    episodes: Dict[str, Any] = Field(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/submit")(self.submit)
        return app

    async def seed_session(self, request: Request, body: KernelSeedRequest) -> BaseSeedSessionResponse:
        made = await asyncio.to_thread(Environment, connect(), body.task, body.max_turns)
        self.episodes[request.session[SESSION_ID_KEY]] = made
        return BaseSeedSessionResponse()

    async def step(self, episode: Environment, answer: str) -> Any:
        try:
            return await asyncio.to_thread(episode.step, answer)
        except MachineFault as fault:
            raise HTTPException(503, str(fault), {"Retry-After": "5"}) from fault

    async def submit(self, request: Request, body: SubmitRequest) -> SubmitResponse:
        episode = self.episodes.get(request.session[SESSION_ID_KEY])
        if episode is None or episode.over:
            return SubmitResponse(feedback="The episode is over: no further kernel is judged.", done=True)
        found = await self.step(episode, body.answer)
        return SubmitResponse(feedback=found.feedback, done=found.done)

    async def verify(self, request: Request, body: KernelVerifyRequest) -> BaseVerifyResponse:
        """What the session's kernels are worth (environment.worth_of);
        the last message is judged where it submitted none."""
        key = request.session.get(SESSION_ID_KEY, "")
        episode: Optional[Environment] = self.episodes.get(key)
        if episode is None or episode.turns == 0:
            episode = await asyncio.to_thread(Environment, connect(), body.task, 1)
            await self.step(episode, text_of(body.response))
        self.episodes.pop(key, None)
        return BaseVerifyResponse(**body.model_dump(), reward=episode.reward)


def rows(client: Client, max_turns: int = 4) -> List[Dict[str, Any]]:
    """A row for each task."""
    return [
        {
            "task": x.id,
            "max_turns": max_turns,
            "responses_create_params": {"input": [{"role": "user", "content": x.prompt}], "tools": [TOOL]},
        }
        for x in client.tasks()
    ]


def main() -> None:
    KernelResourcesServer.run_webserver()
