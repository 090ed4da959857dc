"""The pages: HTML for those who prefer it, at the addresses where the API gives JSON. No page makes a decision of its own."""

from fastapi import APIRouter

from api.pages import (
    account,
    admin,
    admin_grading,
    contests,
    course_grid,
    course_similarity,
    courses,
    docs,
    home,
    leaderboards,
    mine,
    people,
    provider,
    sources,
    stages,
    submissions,
    talking,
    webhooks,
)
from api.pages.site import wellknown
from api.pages.site.problems import problem_page
from api.pages.site.static import Static

router = APIRouter()
for module in (
    home,
    stages,
    submissions,
    sources,
    mine,
    leaderboards,
    account,
    people,
    provider,
    courses,
    course_grid,
    course_similarity,
    contests,
    talking,
    webhooks,
    admin,
    admin_grading,
    docs,
):
    router.include_router(module.router)
for module in (submissions, sources, mine, people, wellknown):
    router.include_router(module.files)

__all__ = ["Static", "problem_page", "router"]
