"""Two workspaces at once: tokens, threads, settings and conversations never mix."""

from __future__ import annotations

from dataclasses import replace

from kb.text.language import has_han
from tests.app.slack.conftest import tells_oom
from tests.app.slack.fake import samples
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.installation import Installation, answered, finished
from tests.app.slack.fake.workspace import Channel, Workspace


def test_answers_go_out_with_the_token_of_their_workspace(installation: Installation) -> None:
    """Interleaved questions in both workspaces: every call names a channel of its own team."""
    slack = installation.slack
    start = len(slack.calls)
    rooms = [
        workspace.add_channel(f"room-{number}")
        for number in range(4)
        for workspace in (installation.alpha, installation.beta)
    ]
    logs = [samples.english_log(), samples.chinese_log()]
    asked = [
        (room, slack.say(room, logs[number % 2], mention=True)) for number, room in enumerate(rooms)
    ]
    for number, (room, message) in enumerate(asked):
        shown = answered(slack, room, message).shown
        assert "存取检查点太慢或卡死" in shown if number % 2 else tells_oom(shown)
    calls = [call for call in slack.calls[start:] if "channel" in call.arguments]
    assert len(calls) >= 4 * len(rooms)
    for call in calls:
        workspace = slack.workspaces[call.team]
        assert call.token == workspace.bot_token
        assert call.arguments["channel"] in workspace.channels
    assert not [call for call in calls if not call.ok]


def twin_channels(alpha: Workspace, beta: Workspace) -> tuple[Channel, Channel]:
    """Channels of two workspaces with one id, as no Slack has them, to prove the team is used."""
    here = alpha.add_channel("twin")
    there = beta.add_channel("twin")
    del beta.channels[there.id]
    there.id = here.id
    beta.channels[there.id] = there
    return here, there


def test_threads_and_settings_are_of_one_workspace(installation: Installation) -> None:
    """The same channel id and timestamp in another workspace is another conversation."""
    slack = installation.slack
    here, there = twin_channels(installation.alpha, installation.beta)
    slack.slash(here, "settings language zh")
    slack.answer(here)
    root = slack.say(here, samples.english_log(), mention=True)
    finished(slack, root)
    shown = slack.answers(here, root)[0].shown
    assert has_han(shown)
    there.messages.append(replace(root, user=installation.beta.add_user("ann").id))
    twin = slack.say(there, "why?", thread=root)
    marker = slack.say(there, samples.english_log(), mention=True)
    answer = answered(slack, there, marker)
    assert not has_han(answer.shown)
    assert slack.answers(there, twin) == []


def test_a_team_that_did_not_install_the_app_gets_nothing(
    slack: FakeSlack, alpha: Workspace, channel: Channel
) -> None:
    """An event of an unknown team is acknowledged and dropped."""
    asked = slack.say(channel, "help", mention=True)
    finished(slack, asked)
    event = next(
        item for item in reversed(slack.deliveries) if item.payload.get("type") == "event_callback"
    )
    start = len(slack.calls)
    strange = event.payload | {"team_id": "T0STRANGER", "event_id": "Ev0STRANGER"}
    strange["authorizations"] = [strange["authorizations"][0] | {"team_id": "T0STRANGER"}]
    strange["event"] = strange["event"] | {"ts": "1.000001", "team": "T0STRANGER"}
    delivery = slack.send("events_api", strange)
    marker = slack.say(channel, "help", mention=True)
    finished(slack, marker)
    slack.until(lambda: delivery.acked, what="acknowledgement")
    posts = [call for call in slack.calls[start:] if call.method == "chat.postMessage"]
    assert {call.arguments.get("thread_ts") for call in posts} == {marker.ts}
