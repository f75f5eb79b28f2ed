"""The board: the team's incidents over time, what recurs and what fixed it, repeat offenders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import streamlit as st
from markupsafe import Markup

from app.render.escape import plain
from app.render.listing import place_text
from app.web.components import cards, charts, markup
from app.web.components.answer_state import api_address
from app.web.components.markup import html
from app.web.context import LANG, LANGUAGE, interface_words, service, show_error
from kb.errors import InputError
from kb.incidents.board import Board, Offender, RecurringGroup, Tally, WeekTally, board_of
from kb.incidents.records import (
    IncidentFilters,
    IncidentRecord,
    known_values,
    offered_values,
    selected,
)
from kb.knowledge.labels import Words
from kb.types.vocabulary import UNKNOWN

GROUPS = 12  # recurring ones that are shown
LATEST = 15  # incidents listed one by one
LINKS = 6  # to the incidents of a row; the others are counted
PLACES = 10  # rows of a table of counts
WEEKS = 26  # on the chart: half a year
# Of the causes with most incidents on the chart, and of all others; readable on light and dark.
COLOURS = ("#3d86d6", "#d08a1e", "#3a9d6e", "#d64545", "#8b6fd0", "#c2609c", "#8b95a1")
CAUSES = len(COLOURS) - 1
CHART_PX = 360
CHARTED = 2  # weeks or values from which on a chart tells more than a number
COMMA = Markup(", ")
AVERAGED = 2  # resolved incidents from which on their mean tells more than one of them
MINUTES_AN_HOUR = 60
DAYS_FROM_H = 48  # hours from which on a mean is told in days
HOURS_A_DAY = 24
MINUTES = len("2026-05-03T09:41")  # of a time in ISO 8601
# Names of the filters with their labels; the same stand in the address and in the API.
FILTERS = {
    "cause": "row.cause",
    "host": "column.host",
    "gpu": "column.gpu",
    "rank": "page.axis_rank",
    "project": "row.project",
    "label": "page.label",
}
OUTCOMES = {"": "page.any", "false": "page.not_resolved", "true": "page.was_resolved"}
OUTCOME = "resolved"
COLUMNS = 4


def page() -> None:
    """Show the board, or how to feed it where there is nothing to show."""
    words = interface_words()
    markup.show(markup.heading(words("page.board"), level=1))
    records = service().incidents()
    if not records:
        _how_to_feed(words)
        return
    filters = _filters(records, words)
    chosen = selected(records, filters)
    board = board_of(chosen)
    _figures(board, words)
    if not chosen:
        markup.show(markup.note(words("page.no_incidents")))
        return
    _recurring(board.recurring, words)
    _offenders(board.offenders, words)
    _over_time(board.weeks, words)
    _counts(board, words)
    _latest(chosen, words)


# --- nothing yet ---------------------------------------------------------------------------------


def _how_to_feed(words: Words) -> None:
    """Four ways in; each is one step."""
    markup.show(markup.note(words("page.board_empty")))
    for label, command in (
        ("page.feed_api", f"curl {api_address(service().settings)}/v1/entries -F file=@job.log"),
        ("page.feed_hook", "TKB_INCIDENTS=1   # /etc/slurm/timeout-kb.env"),
    ):
        markup.show(markup.paragraph(cards.inline(words(label))))
        cards.show_command(command)
    markup.show(
        markup.listed(
            [
                cards.inline(words("page.feed_slack", button=words("slack.button_incident"))),
                cards.page_link(words("page.feed_page", button=words("page.record")), ""),
            ]
        )
    )
    markup.show(markup.faint(words("page.feed_outcome")))


# --- filters -------------------------------------------------------------------------------------


def _filters(records: Sequence[IncidentRecord], words: Words) -> IncidentFilters:
    """The widgets, filled from the address at first, and what they ask for."""
    if _key("seen") not in st.session_state:
        _take_over_address(records, words)
    active = sum(bool(st.session_state.get(_key(name))) for name in (*FILTERS, OUTCOME))
    label = words("page.filters_active", count=active) if active else words("page.filters")
    offered = {name: offered_values(records, name) for name in FILTERS}
    with st.expander(label, expanded=bool(active)):
        shown = [name for name in FILTERS if len(offered[name]) >= CHARTED]
        for at, name in enumerate([OUTCOME, *shown]):
            if at % COLUMNS == 0:  # row by row: a narrow screen keeps the order
                columns = st.columns(COLUMNS)
            with columns[at % COLUMNS]:
                _widget(name, offered.get(name, ()), words)
        if active:
            st.button(words("page.clear_filters"), on_click=_clear)
    chosen = {name: tuple(st.session_state.get(_key(name), ())) for name in FILTERS}
    outcome = st.session_state[_key(OUTCOME)]
    _write_address(chosen, outcome)
    return IncidentFilters(
        resolved=outcome == "true" if outcome else None,
        cause=chosen["cause"],
        host=chosen["host"],
        gpu=chosen["gpu"],
        rank=chosen["rank"],
        project=chosen["project"],
        label=chosen["label"],
    )


def _key(name: str) -> str:
    return f"board.{name}"


def _take_over_address(records: Sequence[IncidentRecord], words: Words) -> None:
    """Fill the widgets; a value that no incident has is refused, and nothing is filtered."""
    state, parameters = st.session_state, st.query_params
    state[_key("seen")] = True
    outcome = parameters.get(OUTCOME, "")
    state[_key(OUTCOME)] = outcome if outcome in OUTCOMES else ""
    try:
        values = {
            name: list(known_values(records, name, parameters.get_all(name))) for name in FILTERS
        }
    except InputError as error:
        show_error(error, words)
        values = {}
    for name in FILTERS:
        state[_key(name)] = values.get(name, [])


def _widget(name: str, offered: Sequence[str], words: Words) -> None:
    if name == OUTCOME:
        st.selectbox(
            words("page.outcome"),
            list(OUTCOMES),
            format_func=lambda value: words(OUTCOMES[value]),
            key=_key(name),
        )
        return
    st.multiselect(
        words(FILTERS[name]),
        offered,
        format_func=lambda value: _value_text(name, value, words),
        key=_key(name),
        placeholder=words("page.any"),
        select_all=False,  # chooses nothing that an empty filter does not
    )


def _value_text(name: str, value: str, words: Words) -> str:
    return _cause_title(value, words) if name == "cause" else plain(value)


def _clear() -> None:
    for name in FILTERS:
        st.session_state[_key(name)] = []
    st.session_state[_key(OUTCOME)] = ""


def _write_address(chosen: Mapping[str, Sequence[str]], outcome: str) -> None:
    """Write the filters to the address bar, so that the board can be sent to somebody."""
    address = {name: list(values) for name, values in chosen.items() if values}
    if outcome:
        address[OUTCOME] = [outcome]
    lang = st.session_state.get(LANGUAGE) or st.query_params.get(LANG)
    st.query_params.from_dict({**({LANG: lang} if lang else {}), **address})


# --- what the board shows -------------------------------------------------------------------------


def _figures(board: Board, words: Words) -> None:
    """How many there are, how many are open, and how long it takes until one is not."""
    parts = [
        markup.safe(words("page.incident_count", count=board.incidents)),
        markup.badge(
            words("page.open_count", count=board.open), "possible" if board.open else "quiet"
        ),
        markup.safe(words("page.resolved_count", count=board.resolved)),
    ]
    if board.mean_hours_to_resolve is not None and board.timed >= AVERAGED:
        mean = _span(board.mean_hours_to_resolve, words)
        text = words("page.mean_to_resolve", span=mean, count=board.timed)
        parts.append(html("<b>{text}</b>", text=text))
    markup.show(markup.paragraph(markup.join(parts, markup.DOT)))


def _span(hours: float, words: Words) -> str:
    """A mean in the unit people plan in."""
    if hours >= DAYS_FROM_H:
        return words("page.span_days", count=f"{hours / HOURS_A_DAY:.1f}")
    if hours < 1:
        minutes = max(1, round(hours * MINUTES_AN_HOUR))
        return words("page.span_minutes", count=minutes)
    return words("page.span_hours", count=f"{hours:.1f}")


def _recurring(groups: Sequence[RecurringGroup], words: Words) -> None:
    if not groups:
        return
    markup.show(markup.heading(words("page.recurring")))
    markup.show(markup.join(_group_card(group, words) for group in groups[:GROUPS]))
    if len(groups) > GROUPS:
        markup.show(markup.faint(words("page.more_groups", count=len(groups) - GROUPS)))


def _group_card(group: RecurringGroup, words: Words) -> Markup:
    """What recurs, how often and since when, and what fixed it."""
    title = html(
        "{times} {cause}",
        times=markup.badge(words("page.times", count=group.incidents), "info"),
        cause=_cause(group.cause, words),
    )
    span = group.last_date
    if group.first_date != group.last_date:
        span = words("page.from_to", first=group.first_date, last=group.last_date)
    meta = [
        markup.safe(span),
        markup.badge(words("page.open_count", count=group.open), "possible")
        if group.open
        else markup.NOTHING,
        markup.safe(group.op),
        markup.safe(words.listing(group.hosts[:PLACES])),
    ]
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{title}</h3>{meta}{quote}{fixes}{links}'
        "</article>",
        title=title,
        meta=markup.faint(markup.join(meta, markup.DOT)),
        quote=markup.quote(group.first_error),
        fixes=_fixes(group, words),
        links=markup.faint(_links(group.ids, words)),
    )


def _fixes(group: RecurringGroup, words: Words) -> Markup:
    """What ended incidents of the group; where nothing did, that is said."""
    if not group.fixes:
        return markup.paragraph(words("page.no_fix_yet"))
    items = [
        html(
            "{fix} {count}",
            fix=cards.inline(applied.fix.title),
            count=cards.entry_link(
                applied.ids[0], words("page.ended_count", count=applied.incidents)
            ),
        )
        for applied in group.fixes
    ]
    return html(
        "<p><b>{label}</b></p>{items}", label=words("page.what_fixed"), items=markup.listed(items)
    )


def _offenders(offenders: Sequence[Offender], words: Words) -> None:
    if not offenders:
        return
    markup.show(markup.heading(words("page.offenders")))
    markup.show(markup.faint(words("page.offenders_lead")))
    markup.show(markup.join(_offender_card(each, words) for each in offenders[:PLACES]))


def _offender_card(offender: Offender, words: Words) -> Markup:
    """A host or a GPU, how often it stood out, and with which causes."""
    where = f"{offender.host} · GPU {offender.gpu}" if offender.gpu else offender.host
    meta = [
        markup.badge(words("page.open_count", count=offender.open), "possible")
        if offender.open
        else markup.NOTHING,
        markup.safe(words("page.last_seen", date=offender.last_date)),
        markup.join((_cause(cause, words) for cause in offender.causes), COMMA),
    ]
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{times} {where}</h3>{meta}{links}</article>',
        times=markup.badge(words("page.times", count=offender.incidents), "info"),
        where=cards.page_link(where, "board", **_place_filters(offender)),
        meta=markup.faint(markup.join(meta, markup.DOT)),
        links=markup.faint(_links(offender.ids, words)),
    )


def _place_filters(offender: Offender) -> dict[str, str]:
    gpu = {"gpu": offender.gpu} if offender.gpu else {}
    return {"host": offender.host, **gpu}


def _over_time(weeks: Sequence[WeekTally], words: Words) -> None:
    """Incidents a week by cause, where there is more than one week to compare."""
    dated = [tally for tally in weeks if tally.week]
    if len({tally.week for tally in dated}) < CHARTED:
        return
    markup.show(markup.heading(words("page.over_time")))
    charts.show_chart(weeks_chart(dated, words))


def weeks_chart(weeks: Sequence[WeekTally], words: Words) -> charts.Spec:
    """Bars a week, stacked by cause; weeks without incidents are there, too."""
    last = max(date.fromisoformat(tally.week) for tally in weeks)
    first = min(date.fromisoformat(tally.week) for tally in weeks)
    first = max(first, last - timedelta(weeks=WEEKS - 1))
    count = (last - first).days // 7 + 1
    domain = [(first + timedelta(weeks=week)).isoformat() for week in range(count)]
    shown = [tally for tally in weeks if tally.week in set(domain)]
    totals: Counter[str] = Counter()
    for tally in shown:
        totals[tally.cause] += tally.incidents
    named = sorted(totals, key=lambda cause: (-totals[cause], cause))[:CAUSES]
    titles = [_cause_title(cause, words) for cause in named]
    others = words("page.others") if len(totals) > len(named) else ""
    rows: Counter[tuple[str, str]] = Counter()
    for tally in shown:
        title = _cause_title(tally.cause, words) if tally.cause in named else others
        rows[tally.week, title] += tally.incidents
    scale = {"domain": [*titles, *filter(None, [others])], "range": list(COLOURS)}
    axis = {"labelAngle": 0, "labelOverlap": True, "labelExpr": "slice(datum.label, 5)"}
    return {
        "config": charts.INK,
        "data": {
            "values": [
                {"week": week, "cause": cause, "count": number}
                for (week, cause), number in rows.items()
            ]
        },
        "height": CHART_PX,
        "mark": {"type": "bar"},
        "encoding": {
            "x": charts.field(
                "week", "ordinal", words("page.axis_week"), scale={"domain": domain}, axis=axis
            ),
            "y": charts.field(
                "count",
                "quantitative",
                words("page.incidents_header"),
                axis={"tickMinStep": 1, "format": "d"},
            ),
            "color": charts.field(
                "cause",
                "nominal",
                None,
                scale=scale,
                legend={"orient": "bottom", "columns": 1, "labelLimit": 330},
            ),
            "tooltip": [
                charts.field("week", "nominal", words("page.axis_week")),
                charts.field("cause", "nominal", words("row.cause")),
                charts.field("count", "quantitative", words("page.incidents_header")),
            ],
        },
    }


def _counts(board: Board, words: Words) -> None:
    """Tables of what the incidents share, each only where there is something to compare."""
    tables = [
        _count_table(words(label), tallies, name, words)
        for name, label, tallies in (
            ("cause", "page.by_cause", board.causes),
            ("host", "page.by_host", board.hosts),
            ("rank", "page.by_rank", board.ranks),
            ("project", "page.by_project", board.projects),
            ("label", "page.by_label", board.labels),
        )
        if len(tallies) >= CHARTED
    ]
    if not tables:
        return
    left, right = st.columns(2)
    with left:
        markup.show(markup.join(tables[::2]))
    with right:
        markup.show(markup.join(tables[1::2]))


def _count_table(title: str, tallies: Sequence[Tally], name: str, words: Words) -> Markup:
    most = tallies[0].incidents
    rows = [
        [
            cards.page_link(_value_text(name, tally.name, words), "board", **{name: tally.name}),
            html(
                '<div class="tk-share tk-likely">{bar}<b>{count}</b></div>',
                bar=markup.bar(tally.incidents / most, str(tally.incidents)),
                count=tally.incidents,
            ),
            str(tally.open),
        ]
        for tally in tallies[:PLACES]
    ]
    rest = sum(tally.incidents for tally in tallies[PLACES:])
    if rest:
        rows.append([words("page.others"), str(rest), str(sum(t.open for t in tallies[PLACES:]))])
    header = ["", words("page.incidents_header"), words("page.open_header")]
    return markup.section(title, markup.table([header, *rows]))


def _latest(records: Sequence[IncidentRecord], words: Words) -> None:
    markup.show(markup.heading(words("page.latest")))
    markup.show(markup.join(_incident_card(record, words) for record in records[:LATEST]))
    if len(records) > LATEST:
        text = words("page.all_incidents", count=len(records))
        markup.show(markup.paragraph(cards.page_link(text, "cases", kind="incident")))


def _incident_card(record: IncidentRecord, words: Words) -> Markup:
    """An incident of the list: its title, and what tells it from others of the same title."""
    tone, state = (
        ("quiet", "page.was_resolved") if record.resolved else ("possible", "page.not_resolved")
    )
    time = record.added_on[:MINUTES].replace("T", " ")
    parts = [
        markup.badge(words(state), tone),
        markup.safe(record.own_cause) or _cause(record.cause, words),
        markup.safe(record.date),
        markup.safe(words("page.added_on", time=time) if time else ""),
        markup.safe(record.log_name),
        markup.safe(words.listing(place_text(place) for place in record.culprits[:LINKS])),
        markup.safe(record.project),
        *(markup.badge(label) for label in record.labels),
    ]
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{title}</h3>{meta}</article>',
        title=cards.entry_link(record.id, record.title.get(words.language)),
        meta=markup.faint(markup.join(parts, markup.DOT)),
    )


def _cause(cause: str, words: Words) -> Markup:
    return markup.safe(words("page.cause_open")) if cause == UNKNOWN else cards.cause_link(cause)


def _cause_title(cause: str, words: Words) -> str:
    known = service().knowledge.cause_by_id.get(cause)
    if cause == UNKNOWN:
        return words("page.cause_open")
    return plain(known.title.get(words.language)) if known else plain(cause)


def _links(ids: Sequence[str], words: Words) -> Markup:
    """Numbered links to the first incidents of a row; the others are counted."""
    links = [cards.entry_link(each, f"#{at}") for at, each in enumerate(ids[:LINKS], start=1)]
    if len(ids) > LINKS:
        links.append(markup.safe(words("page.more_incidents", count=len(ids) - LINKS)))
    return markup.join(links, Markup(" "))
