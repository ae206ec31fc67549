"""The invented tools of the tool-calling family; parameter names vary from item to item."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slimwise.backbones.mini.tasks.words import WEEKDAYS, invented_name, invented_word


@dataclass(frozen=True)
class Parameter:
    """Names it may go by, its JSON type, and how a value is drawn."""

    names: tuple[str, ...]
    json_type: str
    draw: Callable[[random.Random], Any]


@dataclass(frozen=True)
class Tool:
    """A function with a request template whose fields are its parameters in order."""

    name: str
    description: str
    request: str
    parameters: tuple[Parameter, ...]


_place = Parameter(("city", "place", "location"), "string", invented_name)
_destination = Parameter(("to", "destination", "target"), "string", invented_name)
_origin = Parameter(("from", "origin", "start"), "string", invented_name)
_day = Parameter(("day", "date", "when"), "string", lambda rng: rng.choice(WEEKDAYS))
_hour = Parameter(("hour", "time", "at"), "integer", lambda rng: rng.randint(1, 24))
_title = Parameter(("title", "name", "label"), "string", lambda rng: invented_word(rng, 2))
_count = Parameter(("count", "number", "amount"), "integer", lambda rng: rng.randint(2, 99))
_people = Parameter(("people", "guests", "seats"), "integer", lambda rng: rng.randint(2, 9))
_item = Parameter(("item", "product", "thing"), "string", lambda rng: invented_word(rng, 3))
_level = Parameter(("level", "value", "percent"), "integer", lambda rng: rng.randint(1, 100))
_loud = Parameter(("loud", "aloud", "sound"), "boolean", lambda rng: rng.random() < 0.5)
_person = Parameter(("person", "contact", "recipient"), "string", invented_name)

CATALOGUE = (
    Tool("get_weather", "weather forecast", "What is the weather in {} on {}?", (_place, _day)),
    Tool("book_table", "reserve a table", "Book a table for {} at {}.", (_people, _place)),
    Tool("find_flight", "search flights", "Find a flight from {} to {}.", (_origin, _destination)),
    Tool("set_alarm", "set an alarm", "Set an alarm called {} at {}.", (_title, _hour)),
    Tool("order_item", "order goods", "Order {} pieces of {}.", (_count, _item)),
    Tool("set_volume", "change the volume", "Set the volume to {}.", (_level,)),
    Tool("play_song", "play music", "Play the song {}.", (_title,)),
    Tool("send_note", "send a message", "Send {} the word {}.", (_person, _title)),
    Tool("add_event", "add to the calendar", "Put {} on {} at {}.", (_title, _day, _hour)),
    Tool("check_stock", "look up stock", "How many {} are left in {}?", (_item, _place)),
    Tool("call_taxi", "call a taxi", "Call a taxi to {} for {}.", (_destination, _people)),
    Tool("set_lights", "dim the lights", "Dim the lights in {} to {}.", (_place, _level)),
    Tool("read_mail", "read mail", "Read {} mails, spoken: {}.", (_count, _loud)),
    Tool("book_room", "book a hotel", "Book a room in {} on {}.", (_place, _day)),
)
