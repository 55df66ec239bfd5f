"""The sample newspapers and their articles.

`at` is the time of publication: 0 is 50 minutes before the start, but not before midnight, and 1 is the start. Articles
with a value above 1 appear after the start.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Newspaper:
    """A newspaper: its name, the host of its articles, and the format of its feed."""

    key: str
    name: str
    host: str
    format: str


@dataclass(frozen=True)
class Article:
    """An article; `event` names the event that it reports."""

    newspaper: str
    event: str
    at: float
    title: str
    text: str

    @property
    def slug(self) -> str:
        words = "".join(letter if letter.isalnum() else " " for letter in self.title.lower()).split()
        return "-".join(words[:8])


NEWSPAPERS = (
    Newspaper("courier", "Harbour Courier", "harbour-courier.example", "rss"),
    Newspaper("ledger", "Northern Ledger", "northern-ledger.example", "atom"),
    Newspaper("evening", "Evening Post of Lindmar", "evening-lindmar.example", "rss"),
    Newspaper("wire", "Coastline Wire", "coastline-wire.example", "rss"),
    Newspaper("science", "Quarterly Science Desk", "science-desk.example", "atom"),
    Newspaper("sports", "Touchline", "touchline.example", "json"),
)

ARTICLES = (
    Article("wire", "bridge", 0.05, "Old Lindmar swing bridge closed after crack found in main girder",
           "Engineers closed the Lindmar swing bridge on Monday after an inspection found a crack in its main girder. "
           "The harbour authority said lorries will be sent through the northern tunnel until repairs are done."),
    Article("courier", "bridge", 0.12, "Crack in main girder shuts Lindmar swing bridge",
           "The swing bridge at Lindmar was shut to all traffic when inspectors discovered a crack in the main girder. "
           "Lorries must take the northern tunnel, the harbour authority said, until the girder is repaired."),
    Article("evening", "bridge", 0.3, "Lindmar bridge shut: harbour authority sends lorries through northern tunnel",
           "Commuters face long detours after the harbour authority closed the Lindmar swing bridge because of a crack "
           "in a girder. Repairs may take three weeks, and the northern tunnel has to carry the lorries."),
    Article("ledger", "bridge", 0.55, "Repair of cracked Lindmar swing bridge to take three weeks",
           "Welders will need about three weeks to repair the cracked main girder of the Lindmar swing bridge, the "
           "harbour authority announced; traffic goes through the northern tunnel meanwhile."),
    Article("wire", "budget", 0.08, "Parliament of Osterby passes budget after all-night session",
           "Osterby's parliament passed next year's budget by 61 votes to 58 after a session that lasted until dawn. "
           "Finance minister Ida Holm called the compromise on school spending painful but necessary."),
    Article("ledger", "budget", 0.2, "Osterby budget passes by three votes at dawn",
           "By 61 votes to 58 the parliament in Osterby approved the budget for next year after an all-night debate. "
           "Finance minister Ida Holm had given way on spending for schools."),
    Article("evening", "budget", 0.42, "Holm's school compromise saves the Osterby budget",
           "A late compromise on school spending by finance minister Ida Holm carried the Osterby budget through "
           "parliament at dawn, 61 votes against 58."),
    Article("science", "telescope", 0.15, "Telescope on Mount Veld records first light",
           "Astronomers opened the dome of the new eight-metre telescope on Mount Veld and recorded its first light: "
           "an image of a spiral galaxy sixty million light years away."),
    Article("wire", "telescope", 0.28, "First light for eight-metre Mount Veld telescope",
           "The new eight-metre telescope on Mount Veld has seen first light. Its astronomers published an image of a "
           "spiral galaxy at a distance of sixty million light years."),
    Article("courier", "telescope", 0.5, "Mount Veld telescope shows its first galaxy",
           "After nine years of construction the eight-metre telescope on Mount Veld recorded its first light, a "
           "spiral galaxy sixty million light years from here, astronomers said."),
    Article("sports", "final", 0.25, "Rowing: Karlund beat Osterby by less than a second in cup final",
           "Karlund won the rowing cup final against Osterby by less than a second on the Grand Canal, their first "
           "title in eleven years. Team captain Mira Sand thanked the coach and the crew after the race."),
    Article("evening", "final", 0.4, "Karlund rowers win cup final against Osterby by less than a second",
           "Karlund's eight took the rowing cup on the Grand Canal, less than a second ahead of Osterby. It is the "
           "club's first title for eleven years, said captain Mira Sand."),
    Article("ledger", "final", 0.65, "First rowing title in eleven years for Karlund",
           "With a lead of less than a second over Osterby, Karlund won the rowing cup final on the Grand Canal. "
           "It had waited eleven years for the title."),
    Article("wire", "ferry", 0.35, "Ferry to Skarn Island stops for a week over engine fault",
           "The only ferry to Skarn Island will not sail for a week because of a fault in its engine, its owner said. "
           "Fishing boats carry post and medicine to the four hundred islanders."),
    Article("courier", "ferry", 0.48, "Skarn Island without ferry for a week",
           "An engine fault keeps the ferry to Skarn Island in port for a week. Four hundred islanders get post and "
           "medicine by fishing boat, the owner of the ferry said."),
    Article("science", "seed", 0.45, "Barley that needs a third less water passes field trial",
           "A barley variety bred at the university of Karlund needed a third less water than common kinds in a field "
           "trial over two summers, without a smaller harvest, researchers report."),
    Article("ledger", "seed", 0.7, "Karlund barley thrives on a third less water, two-summer trial finds",
           "Researchers of the university of Karlund have bred a barley which grew as well as common kinds with a "
           "third less water. The field trial lasted two summers."),
    Article("courier", "hospital", 0.6, "Lindmar hospital opens new emergency department",
           "The hospital of Lindmar opened its new emergency department with thirty beds on Monday. Director Astrid "
           "Voll said patients with minor injuries should wait less than an hour."),
    Article("evening", "hospital", 0.75, "Thirty beds in new emergency department of Lindmar hospital",
           "Lindmar's hospital has opened an emergency department with thirty beds. Patients with minor injuries are "
           "to wait less than an hour, said director Astrid Voll."),
    Article("wire", "strike", 0.8, "Tram drivers in Karlund call one-day strike for Thursday",
           "The union of Karlund's tram drivers has called a strike for the whole of Thursday. It wants shorter split "
           "shifts; the transport company offers talks."),
    Article("evening", "strike", 0.88, "No trams in Karlund on Thursday as drivers strike over split shifts",
           "Karlund's tram drivers will strike all day on Thursday. Their union demands shorter split shifts, and the "
           "transport company has offered talks."),
    Article("sports", "chess", 0.7, "Tove Lind wins national chess title in final round",
           "Tove Lind drew her last game after ninety moves and is the new national chess champion."),
    Article("courier", "storm", 0.9, "Gale warning for the whole coast from midnight",
           "The weather service warns of a gale along the whole coast from midnight, with gusts of a hundred and ten "
           "kilometres an hour and high water in the harbours."),
    Article("wire", "storm", 0.95, "Weather service warns coast of gale and high water from midnight",
           "Gusts of up to a hundred and ten kilometres an hour are expected along the coast from midnight. The "
           "weather service issued a gale warning and expects high water in harbours."),
    Article("evening", "storm", 1.1, "Harbours prepare for gale: high water expected after midnight",
           "Harbour masters along the coast had boats doubled up on their lines ahead of the gale that the weather "
           "service expects from midnight, with high water and gusts of a hundred and ten kilometres an hour."),
    Article("ledger", "strike", 1.2, "Karlund tram strike on Thursday: company offers talks on split shifts",
           "One day before the strike of its tram drivers the transport company of Karlund has offered talks about "
           "shorter split shifts. The union is sticking to Thursday."),
    Article("ledger", "ferry", 1.35, "Spare engine for Skarn ferry is on its way",
           "A spare engine for the ferry to Skarn Island has left the yard, its owner said. The ferry is to sail again "
           "within a week; until then fishing boats bring post and medicine to the islanders."),
)  # fmt: skip
