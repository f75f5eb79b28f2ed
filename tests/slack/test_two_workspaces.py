"""Two workspaces at once: tokens, threads, settings and conversations never mix."""

from __future__ import annotations

from dataclasses import replace

from tests.slack import samples
from tests.slack.calls import strings
from tests.slack.fake_slack import FakeSlack
from tests.slack.office import Office, answered, finished
from tests.slack.workspace import Channel, Workspace


def test_answers_go_out_with_the_token_of_their_workspace(office: Office) -> None:
    """Interleaved questions in both workspaces: every call names a channel of its own team."""
    slack = office.slack
    start = len(slack.calls)
    rooms = [
        workspace.add_channel(f"room-{number}")
        for number in range(4)
        for workspace in (office.alpha, office.beta)
    ]
    logs = [samples.english_log(), samples.chinese_log()]
    asked = [
        (room, slack.say(room, logs[number % 2], mention=True)) for number, room in enumerate(rooms)
    ]
    for number, (room, message) in enumerate(asked):
        shown = "\n".join(strings(answered(slack, room, message).blocks))
        assert ("checkpoint-io" if number % 2 else "rank-crash") in shown
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


def test_threads_and_settings_are_of_one_workspace(office: Office) -> None:
    """The same channel id and timestamp in another workspace is another conversation."""
    slack = office.slack
    here, there = twin_channels(office.alpha, office.beta)
    slack.slash(here, "settings language zh")
    slack.answer(here)
    root = slack.say(here, samples.english_log(), mention=True)
    finished(slack, root)
    shown = "\n".join(strings(slack.answers(here, root)[0].blocks))
    assert any("\u4e00" <= char <= "\u9fff" for char in shown)
    there.messages.append(replace(root, user=office.beta.add_user("ann").id))
    twin = slack.say(there, "why?", thread=root)
    marker = slack.say(there, samples.english_log(), mention=True)
    answer = answered(slack, there, marker)
    assert not any("\u4e00" <= char <= "\u9fff" for char in "\n".join(strings(answer.blocks)))
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
