"""Two hundred tools of an imaginary office, their results, and a conversation that needs some of them.

They are the same on every run, so that the reports of all SDKs can be compared.
"""

import argparse
import json

# Each service has a description, the kind of object that it stores, and two fields of that object.
SERVICES = {
    "calendar": ("the team calendar", "event", "starts_at", "location"),
    "contacts": ("the address book", "contact", "email", "phone"),
    "invoices": ("outgoing invoices", "invoice", "customer", "due_date"),
    "tickets": ("the support desk", "ticket", "severity", "assignee"),
    "wiki": ("the internal wiki", "page", "space", "parent_page"),
    "repos": ("source repositories", "pull_request", "branch", "reviewer"),
    "deploys": ("deployments to production", "release", "environment", "version"),
    "storage": ("shared file storage", "file", "folder", "owner"),
    "payroll": ("salaries and payslips", "payslip", "employee", "month"),
    "travel": ("business travel", "booking", "destination", "departs_at"),
    "shipping": ("parcels and couriers", "parcel", "courier", "postcode"),
    "inventory": ("the warehouse", "item", "shelf", "quantity"),
    "surveys": ("customer surveys", "survey", "audience", "closes_at"),
    "alerts": ("monitoring alerts", "alert", "metric", "threshold"),
    "leads": ("the sales pipeline", "lead", "company", "stage"),
    "recruiting": ("job applications", "application", "position", "candidate"),
    "rooms": ("meeting rooms", "reservation", "floor", "seats"),
    "budgets": ("departmental budgets", "budget", "department", "year"),
    "newsletters": ("mailing campaigns", "campaign", "segment", "subject"),
    "assets": ("laptops and other equipment", "asset", "serial_number", "holder"),
}

ID = {"type": "string", "description": "Identifier as returned by a search or list."}


def actions(thing, first, second):
    """Verb, description, properties and required properties of each tool of a service."""
    name = thing.replace("_", " ")
    fields = {
        first: {"type": "string", "description": f"The {first.replace('_', ' ')} of the {name}."},
        second: {"type": "string", "description": f"The {second.replace('_', ' ')} of the {name}."},
    }
    one = {f"{thing}_id": ID}
    limit = {"limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "At most this many."}}
    text = {"query": {"type": "string", "description": "Words to look for."}}
    comment = {"text": {"type": "string", "description": "The comment, in Markdown."}}
    state = {"state": {"type": "string", "enum": ["open", "closed", "archived"], "description": "Only in this state."}}
    export = {"format": {"type": "string", "enum": ["csv", "json", "pdf"], "description": "Format of the file."}}
    return [
        ("create", f"Creates a new {name}.", {"title": {"type": "string", "description": "A short title."}, **fields}, ["title", first]),
        ("get", f"Reads one {name} with all of its details.", one, list(one)),
        ("update", f"Changes fields of an existing {name}; fields left out stay as they are.", {**one, **fields}, list(one)),
        ("delete", f"Deletes a {name} for good.", one, list(one)),
        ("list", f"Lists every {name}, newest first.", {**state, **limit}, []),
        ("search", f"Finds each {name} that matches some words.", {**text, **limit}, ["query"]),
        ("archive", f"Puts a {name} away without deleting it.", one, list(one)),
        ("comment", f"Adds a comment to a {name}.", {**one, **comment}, [*one, "text"]),
        ("history", f"Shows who changed a {name} and when.", {**one, **limit}, list(one)),
        ("export", f"Exports each {name} of a period as a file.", {**export, **state}, ["format"]),
    ]


FORECAST = {
    "name": "weather__forecast",
    "description": "Weather forecast for a city, for up to ten days.",
    "schema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city."},
            "days": {"type": "integer", "minimum": 1, "maximum": 10, "description": "How many days ahead."},
        },
        "required": ["city"],
    },
}


def tools(count=200):
    """Name, description and schema of `count` tools. The needed ones are always included."""
    made = []
    for service, (what, thing, first, second) in SERVICES.items():
        for verb, sentence, properties, required in actions(thing, first, second):
            schema = {"type": "object", "properties": properties, "required": required}
            made.append({"name": f"{service}__{verb}_{thing}", "description": f"{sentence} Part of {what}.", "schema": schema})
    # This replaces a tool in the middle of the list that the conversation does not need.
    made[137] = FORECAST
    needed = ("weather__forecast", "calendar__create_event", "rooms__list_reservation")
    last = [tool for tool in made if tool["name"] in needed]
    return made if count >= len(made) else [tool for tool in made if tool not in last][: count - len(last)] + last


def run(name, arguments):
    """The result of a tool."""
    if name == "weather__forecast":
        return f"Rain in {arguments['city']}, 4 degrees."
    return f"{name}: {json.dumps(arguments, sort_keys=True)}"


# The user messages. Each is sent after the previous turn has ended. The scripted model reads the goals in them.
MESSAGES = [
    'Shall I take an umbrella? goal: weather__forecast {"city":"Oslo","days":2}',
    'Then put it into my calendar. goal: calendar__create_event {"title":"Umbrella","starts_at":"tomorrow"} '
    'goal: rooms__list_reservation {"limit":3}',
]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("url", help="URL of the API, without a path")
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--previous", action="store_true", help="Responses: send `previous_response_id` and only the new items")
    parser.add_argument("--tools", type=int, default=200, help="number of tools")
    parser.add_argument("--first", action="store_true", help="only the first user message")
    parser.add_argument("--schema", action="store_true", help="Gemini: declare tools in the API's own schema language")
    return parser.parse_args()


def messages(args):
    """The user messages."""
    return MESSAGES[:1] if args.first else MESSAGES


def report(turns):
    print(json.dumps({"turns": turns}, indent=1))
