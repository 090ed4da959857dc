"""The pages: HTML for those who prefer it, at the addresses where the API gives JSON. No page makes a decision of its own."""

from fastapi import APIRouter

from api.pages import account, admin, admin_grading, home, leaderboards, mine, stages, submissions
from api.pages.problems import problem_page

router = APIRouter()
for module in (home, stages, submissions, mine, leaderboards, account, admin, admin_grading):
    router.include_router(module.router)
router.include_router(submissions.files)

__all__ = ["problem_page", "router"]
