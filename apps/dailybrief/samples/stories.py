"""What the newspapers of the samples report.

`at` says when: 0 is almost an hour before the start, 1 is the start; what is beyond 1 appears while you watch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A newspaper: its name, the host of its articles, and the format of its feed."""

    key: str
    name: str
    host: str
    form: str


@dataclass(frozen=True)
class Sample:
    """An article."""

    paper: str
    event: str
    at: float
    title: str
    text: str

    @property
    def slug(self) -> str:
        words = "".join(sign if sign.isalnum() else " " for sign in self.title.lower()).split()
        return "-".join(words[:8])


PAPERS = (
    Paper("courier", "Harbour Courier", "harbour-courier.example", "rss"),
    Paper("ledger", "Northern Ledger", "northern-ledger.example", "atom"),
    Paper("evening", "Evening Post of Lindmar", "evening-lindmar.example", "rss"),
    Paper("wire", "Coastline Wire", "coastline-wire.example", "rss"),
    Paper("science", "Quarterly Science Desk", "science-desk.example", "atom"),
    Paper("sports", "Touchline", "touchline.example", "json"),
)

SAMPLES = (
    Sample("wire", "bridge", 0.05, "Old Lindmar swing bridge closed after crack found in main girder",
           "Engineers closed the Lindmar swing bridge on Monday after an inspection found a crack in its main girder. "
           "The harbour authority said lorries will be sent through the northern tunnel until repairs are done."),
    Sample("courier", "bridge", 0.12, "Crack in main girder shuts Lindmar swing bridge",
           "The swing bridge at Lindmar was shut to all traffic when inspectors discovered a crack in the main girder. "
           "Lorries must take the northern tunnel, the harbour authority said, until the girder is repaired."),
    Sample("evening", "bridge", 0.3, "Lindmar bridge shut: harbour authority sends lorries through northern tunnel",
           "Commuters face long detours after the harbour authority closed the Lindmar swing bridge because of a crack "
           "in a girder. Repairs may take three weeks, and the northern tunnel has to carry the lorries."),
    Sample("ledger", "bridge", 0.55, "Repair of cracked Lindmar swing bridge to take three weeks",
           "Welders will need about three weeks to repair the cracked main girder of the Lindmar swing bridge, the "
           "harbour authority announced; traffic goes through the northern tunnel meanwhile."),
    Sample("wire", "budget", 0.08, "Parliament of Osterby passes budget after all-night session",
           "Osterby's parliament passed next year's budget by 61 votes to 58 after a session that lasted until dawn. "
           "Finance minister Ida Holm called the compromise on school spending painful but necessary."),
    Sample("ledger", "budget", 0.2, "Osterby budget passes by three votes at dawn",
           "By 61 votes to 58 the parliament in Osterby approved the budget for next year after an all-night debate. "
           "Finance minister Ida Holm had given way on spending for schools."),
    Sample("evening", "budget", 0.42, "Holm's school compromise saves the Osterby budget",
           "A late compromise on school spending by finance minister Ida Holm carried the Osterby budget through "
           "parliament at dawn, 61 votes against 58."),
    Sample("science", "telescope", 0.15, "Telescope on Mount Veld records first light",
           "Astronomers opened the dome of the new eight-metre telescope on Mount Veld and recorded its first light: "
           "an image of a spiral galaxy sixty million light years away."),
    Sample("wire", "telescope", 0.28, "First light for eight-metre Mount Veld telescope",
           "The new eight-metre telescope on Mount Veld has seen first light. Its astronomers published an image of a "
           "spiral galaxy at a distance of sixty million light years."),
    Sample("courier", "telescope", 0.5, "Mount Veld telescope shows its first galaxy",
           "After nine years of construction the eight-metre telescope on Mount Veld recorded its first light, a "
           "spiral galaxy sixty million light years from here, astronomers said."),
    Sample("sports", "final", 0.25, "Rowing: Karlund beat Osterby by a canal's width in cup final",
           "Karlund won the rowing cup final against Osterby by less than a second on the Grand Canal, their first "
           "title in eleven years. Stroke Mira Sand collapsed behind the line and was cheered by both banks."),
    Sample("evening", "final", 0.4, "Karlund rowers win cup final against Osterby by less than a second",
           "Karlund's eight took the rowing cup on the Grand Canal, less than a second ahead of Osterby. It is the "
           "club's first title for eleven years; stroke Mira Sand needed help to leave the boat."),
    Sample("ledger", "final", 0.65, "First rowing title in eleven years for Karlund",
           "With a lead of less than a second over Osterby, Karlund won the rowing cup final on the Grand Canal. "
           "It had waited eleven years for the title."),
    Sample("wire", "ferry", 0.35, "Ferry to Skarn Island stops for a week over engine fault",
           "The only ferry to Skarn Island will not sail for a week because of a fault in its engine, its owner said. "
           "Fishing boats carry post and medicine to the four hundred islanders."),
    Sample("courier", "ferry", 0.48, "Skarn Island without ferry for a week",
           "An engine fault keeps the ferry to Skarn Island in port for a week. Four hundred islanders get post and "
           "medicine by fishing boat, the owner of the ferry said."),
    Sample("science", "seed", 0.45, "Barley that needs a third less water passes field trial",
           "A barley variety bred at the university of Karlund needed a third less water than common kinds in a field "
           "trial over two summers, without a smaller harvest, researchers report."),
    Sample("ledger", "seed", 0.7, "Karlund barley thrives on a third less water, two-summer trial finds",
           "Researchers of the university of Karlund have bred a barley which grew as well as common kinds with a "
           "third less water. The field trial lasted two summers."),
    Sample("courier", "museum", 0.6, "Stolen clock of the brig Halcyon returns to museum by post",
           "A ship's clock that was stolen from the maritime museum of Lindmar twelve years ago came back by post, "
           "wrapped in newspaper. Director Astrid Voll knew the clock of the brig Halcyon by a dent in its case."),
    Sample("evening", "museum", 0.75, "Twelve years after the theft, the Halcyon's clock comes back in a parcel",
           "The clock of the brig Halcyon is in its museum again: twelve years after the theft it arrived by post, "
           "wrapped in newspaper, with no letter and no sender, said Astrid Voll, the director."),
    Sample("wire", "strike", 0.8, "Tram drivers in Karlund call one-day strike for Thursday",
           "The union of Karlund's tram drivers has called a strike for the whole of Thursday. It wants shorter split "
           "shifts; the transport company offers talks."),
    Sample("evening", "strike", 0.88, "No trams in Karlund on Thursday as drivers strike over split shifts",
           "Karlund's tram drivers will strike all day on Thursday. Their union demands shorter split shifts, and the "
           "transport company has offered talks."),
    Sample("sports", "chess", 0.7, "Twelve-year-old holds chess champion to a draw in Osterby",
           "Twelve-year-old Tove Lind drew with the national chess champion after ninety moves in Osterby."),
    Sample("courier", "storm", 0.9, "Gale warning for the whole coast from midnight",
           "The weather service warns of a gale along the whole coast from midnight, with gusts of a hundred and ten "
           "kilometres an hour and high water in the harbours."),
    Sample("wire", "storm", 0.95, "Weather service warns coast of gale and high water from midnight",
           "Gusts of up to a hundred and ten kilometres an hour are expected along the coast from midnight. The "
           "weather service issued a gale warning and expects high water in harbours."),
    Sample("evening", "storm", 1.1, "Harbours prepare for gale: high water expected after midnight",
           "Harbour masters along the coast had boats doubled up on their lines ahead of the gale that the weather "
           "service expects from midnight, with high water and gusts of a hundred and ten kilometres an hour."),
    Sample("ledger", "strike", 1.2, "Karlund tram strike on Thursday: company offers talks on split shifts",
           "One day before the strike of its tram drivers the transport company of Karlund has offered talks about "
           "shorter split shifts. The union keeps to Thursday."),
    Sample("ledger", "ferry", 1.35, "Spare engine for Skarn ferry is on its way",
           "A spare engine for the ferry to Skarn Island has left the yard, its owner said. The ferry is to sail again "
           "within a week; until then fishing boats bring post and medicine to the islanders."),
)  # fmt: skip
