"""OpenAI's interface: /v1/chat/completions, /v1/models and /v1/embeddings, for chat clients that speak it."""

from fastapi import APIRouter, Depends

from flows.service.access import needs

router = APIRouter(prefix="/v1", dependencies=[Depends(needs("ask"))], tags=["openai"])
