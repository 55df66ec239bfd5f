"""The planted set: a thousand invented documents, passages that were planted in some of them, and questions.

How it was made: 48 passages and their questions were written by hand for this purpose, before any weight of the search
was looked at. No person, place or firm is real. The questions are paraphrases: they ask in other words than the passage
answers in, as far as one would. Around them, templates make a thousand documents of eight kinds (leases, manuals,
minutes, letters, policies, reports, recipes, contracts) by a fixed seed, of four to seven passages each, which speak of
the same things: rent, boilers, budgets, leave, patients, bridges, dough, deliveries. A planted passage stands somewhere
in a document of its kind.

How it is split: the questions in the order of the SHA-256 of their passages; every other one is held out. Weights were
chosen on the tuning part alone; the held-out part was only ever scored. One person wrote passages and questions, so the
figures say how well the search does on texts of this style, not on every library.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

DOCUMENTS = 1000
SEED = 20310417


@dataclass(frozen=True)
class Question:
    """A question, and the planted passage that answers it."""

    text: str
    kind: str
    passage: str

    @property
    def is_held_out(self) -> bool:
        return self in _HELD_OUT


@dataclass(frozen=True)
class Written:
    """A document: its name, and its passages in their order."""

    name: str
    passages: tuple[str, ...]


def _of(kind: str, *pairs: tuple[str, str]) -> list[Question]:
    return [Question(text, kind, passage) for text, passage in pairs]


QUESTIONS: list[Question] = [
    *_of(
        "lease",
        ("May the tenant have a cat?", "Animals: one cat or small dog is permitted per flat, provided that the neighbours in the stairwell have been told and raise no objection."),
        ("Who pays when a window gets broken?", "Glass that cracks or shatters during the tenancy is replaced by the occupant, unless a storm or a third person has caused it."),
        ("How far ahead do I have to tell them that I am moving out?", "Either side ends the agreement by letter, three months before the quarter in which the keys are handed back."),
        ("Can I paint the walls in a colour I like?", "The occupant may decorate as they wish; on leaving, rooms must be returned in white or another light shade."),
        ("What happens to the money that was paid as security?", "The deposit of two monthly payments lies in a savings account and is given back with interest eight weeks after departure, less what is owed."),
        ("Is it allowed to sublet a room to a student?", "Handing over part of the dwelling to others for payment requires the owner's written consent, which is given for lodgers in education."),
    ),
    *_of(
        "manual",
        ("What should I do if the device becomes too hot?", "Should the housing exceed sixty degrees, the fan runs at full speed; let the unit cool for a quarter of an hour with the door open before you go on."),
        ("How do I reset the machine to how it came from the factory?", "Hold the two outer buttons for ten seconds until the lamp flashes blue: all stored values are erased and the original ones restored."),
        ("Which oil does the gearbox need?", "Fill the transmission with synthetic lubricant of grade 75W-90 up to the red mark; mineral products damage the seals."),
        ("The pump makes noise but no water comes out. Why?", "A rattling sound without flow means that air has been drawn in: open the vent screw until liquid emerges without bubbles, then close it."),
        ("How often must the filter be changed?", "Replace the cartridge after four hundred hours of operation, or sooner if the gauge stays in the yellow zone."),
        ("What does error code E17 mean?", "E17: the sensor at the intake reports nothing. Check the plug behind the left panel for corrosion before ordering a new part."),
    ),
    *_of(
        "minutes",
        ("Did the board agree to buy the van?", "Acquisition of a second-hand delivery vehicle for at most eighteen thousand was approved with five votes against two; Ms Okafor abstained."),
        ("Who will look for a new treasurer?", "Since Mr Lindqvist steps down from the accounts in autumn, Ms Adeyemi undertakes to find candidates and to present them at the next assembly."),
        ("Why was the summer party cancelled?", "The fête planned for June will not take place: the meadow is under water, and no other site could be had on that day."),
        ("What did they decide about the leaking roof of the hall?", "For the damp in the gymnasium's ceiling two quotations are on the table; the cheaper one of Brandt & Sons is to be commissioned before winter."),
        ("How much is the membership fee next year?", "From January onward members contribute forty-eight a year instead of forty; pensioners and pupils go on paying half."),
        ("When do they meet again?", "There being no further business, the chair closes the session at 21:40 and convenes the following one for the second Tuesday in March."),
    ),
    *_of(
        "letter",
        ("Where is grandmother's ring hidden?", "You will laugh: the ring with the garnet is still in the biscuit tin, beneath the buttons, where she put it the winter of the burglary."),
        ("Why did he leave the navy?", "I handed in my uniform not for lack of courage but because my left ear never recovered from the explosion on the Hesperia."),
        ("How is the baby doing?", "The little one has gained two pounds since Easter, sleeps through from ten to five and laughs at the dog."),
        ("What does she want in exchange for the piano?", "As for the upright, I ask for no money; but if your brother would rebuild the garden wall, it is yours."),
        ("Which train will uncle take?", "He arrives with the slow connection via Karsund, platform four, a little after noon on Saturday, and cannot carry much."),
        ("What did the doctor say about father's heart?", "Dr Imre listened for a long time and found the pulse irregular; he is to rest, avoid salt and come back in a fortnight."),
    ),
    *_of(
        "policy",
        ("Can employees work from abroad?", "Staff may perform their duties from another country for up to thirty days a year, within the union, after the tax office of the firm has been informed."),
        ("What is the rule for presents from suppliers?", "Gifts by business partners worth more than twenty-five are declined or handed to the raffle; invitations to meals are noted in the register."),
        ("How many days off does one get when a child is born?", "On the birth of a daughter or son the second parent is released for fifteen working days with full pay, to be taken within six months."),
        ("How long must a password be?", "Secrets for signing in have at least fourteen characters; they are changed when there is a suspicion, not by the calendar."),
        ("What do I do if I lose my laptop?", "A missing computer is reported to the service desk by telephone at any hour, so that it can be locked from afar before a police report is filed."),
        ("Does the company pay for a language course?", "Costs of lessons in a tongue that is used with customers are refunded up to six hundred per year, upon proof of attendance."),
    ),
    *_of(
        "report",
        ("Why did the bridge close to lorries?", "Cracks in the third girder grew by four millimetres within a season; heavy vehicles have therefore been banned from the crossing since October."),
        ("Did the new medicine help people sleep?", "Participants who received the substance fell asleep nineteen minutes earlier on average than those given the placebo, a difference unlikely to be chance."),
        ("How many otters live at the river?", "Tracks and camera traps point to at least eleven adult otters along the middle course, two more than at the previous count."),
        ("What caused the fire in the warehouse?", "The blaze began at a charging station for forklifts, where a worn cable had been repaired with tape."),
        ("Is the drinking water safe?", "All ninety-six samples from taps in the municipality were free of germs, and nitrate stayed at a third of the permitted level."),
        ("How did sales develop in the north?", "Turnover in the northern region fell by seven percent, mostly because two department stores closed their doors in spring."),
    ),
    *_of(
        "recipe",
        ("What can I use instead of eggs in the cake?", "Those who avoid animal products bind the batter with three spoonfuls of ground linseed, soaked in warm water until it draws threads."),
        ("How do I keep the bread from getting too hard?", "For a soft crust, brush the loaf with milk straight from the oven and let it rest beneath a linen cloth."),
        ("How long does the soup stay good in the fridge?", "Covered and cold, the broth can be eaten for four days; frozen in small portions it lasts until spring."),
        ("Why is my custard full of lumps?", "Curdled cream comes from too much heat: take the pan off the flame as soon as it coats a spoon, and pass it through a sieve."),
        ("Which mushrooms belong in the pie?", "Best are chanterelles picked after rain; cultivated brown caps will do, but they must lose their liquid in the pan first."),
        ("Is there a version without nuts for people with allergies?", "Guests who cannot tolerate almonds get the variant with toasted oats and pumpkin seeds; use a clean tray for it."),
    ),
    *_of(
        "contract",
        ("What if the goods arrive too late?", "Should the consignment reach the purchaser more than ten days after the agreed date, one percent of the price is forfeited for every further week."),
        ("Who owns the software after it has been written?", "Upon full payment all rights of use in the programs created hereunder pass to the client, including the source text."),
        ("Which court decides when the parties quarrel?", "Disputes that cannot be settled amicably within sixty days are brought before the commercial chamber in Vellmar."),
        ("For how long must trade secrets be kept?", "Confidential knowledge gained from the other party is to be guarded for five years beyond the end of the cooperation."),
        ("Can prices go up while the deal is running?", "Rates are fixed for the first year; later they follow the index of producer costs, capped at three percent per annum."),
        ("What are good reasons to end the agreement at once?", "Termination without notice is open to either side if the other becomes insolvent, or breaks an essential duty despite a written warning."),
    ),
]  # fmt: skip

NAMES = "Amsel Birk Corvin Dahl Eskil Fenna Gorm Hedda Idun Jorid Kaspar Liv Maren Nils Odd Petra Quist Runa Sten Tove".split()
PLACES = "Vellmar Karsund Oderby Lindwick Skarholm Brenna Tarnfeld Mosvik Elmstad Havnau Rudkirk Westerlo".split()
MONTHS = "January February March April May June July August September October November December".split()

TEMPLATES: dict[str, list[str]] = {
    "lease": [
        "The rent for the flat in {place} is {number} a month and is due on the third working day. Payments that come late are noted, and reminders cost {small}.",
        "Heating and hot water are settled once a year by consumption. The last reading was taken by {name} in {month} {year}.",
        "The cellar room number {small} belongs to the dwelling. Bicycles are kept in the yard, prams under the stairs.",
        "The landlord {name} {name2} may inspect the rooms after an announcement of {small} days, between nine and six o'clock.",
        "Small repairs of taps, switches and blinds up to {number} are borne by the tenant, all larger ones by the owner.",
        "The keys handed over in {month}: {small} for the front door, {small} for the flat, one for the letter box.",
        "Between ten at night and six in the morning the house is to be quiet. Music lessons end at eight.",
        "The staircase is swept weekly in turn; the plan hangs beside the meter cupboard. In {month} it is {name}'s turn.",
        "The contract begins on {small} {month} {year} and runs for an indefinite time in the house at {place}.",
        "Balconies may carry flower boxes that are fixed inwards. Barbecues with charcoal are forbidden there.",
    ],
    "manual": [
        "Before first use remove the transport locks on the underside and keep them. The machine of type {name}-{number} weighs {number} kilograms.",
        "Connect the unit to a socket with a fuse of {small} ampere. Never use an extension in the wash house.",
        "Press the green button for {small} seconds. The display shows the pressure in bar and the hours of operation.",
        "The belt must give by {small} millimetres under the thumb. Tighten the nut on the motor mount if it gives more.",
        "Clean the drum with warm water and a soft cloth every {small} weeks. Acids dull the steel.",
        "Spare parts are ordered from the depot in {place} with the number on the type plate, for example {number}-{small}.",
        "The guarantee of {small} months is void if the seal on the control box has been broken.",
        "Store the appliance dry and above freezing. Before winter drain the hoses and loosen the valve by {small} turns.",
        "The timer runs for at most {number} minutes. It is set with the wheel and started by pushing it in.",
        "Wear gloves and glasses when the cover is open. The blade keeps turning for {small} seconds after switching off.",
    ],
    "minutes": [
        "Present were {name}, {name2} and {small} further members of the society in {place}. The minutes of {month} were accepted.",
        "{name} reported on the accounts of {year}: income of {number}, expenses of {number2}. The auditors had no remarks.",
        "The choir asks for the small hall on Thursdays. {name2} will talk with the caretaker by {month}.",
        "A donation of {number} by the savings bank was noted with thanks. It goes to the youth section.",
        "The path behind the club house is to be gravelled. {small} volunteers have put their names down.",
        "The web page shows old dates. {name} offers to bring it up to date before {month}.",
        "There was a long discussion about parking at {place}. No vote was taken; it will be taken up again.",
        "The library has lent {number} books in {year}, {small} more than the year before. New shelves are needed.",
        "{name2} thanked all who had helped with the market in {month}. The net proceeds were {number}.",
        "The insurance for the rowing boats runs out in {month} {year}. Three offers will be sought.",
    ],
    "letter": [
        "Dear {name}, thank you for the photographs of {place}. I have put the one with the pear tree above my desk.",
        "The weather has been dreadful since {month}; the road to {place} was closed for {small} days and we lived on potatoes.",
        "{name2} has found work at the mill and seems content. She sends her love and asks after your knees.",
        "I enclose {number} for the children's shoes. Please do not send it back again.",
        "Do you remember the teacher with the cane? I met him at the station in {place}, old and very polite.",
        "The hens lay well, {small} eggs on good days, and the fox has not come back since {month}.",
        "We are thinking of selling the boat. It was {name}'s pride, but no one has sailed her since {year}.",
        "Your last parcel took {small} weeks. The jam had leaked over the scarf, which is now pink.",
        "On Sunday {name2} played the organ for the first time, with {small} mistakes that only I heard.",
        "Write soon, and tell me whether the new bridge at {place} is as ugly as they say.",
    ],
    "policy": [
        "This guideline applies to all sites, including {place}, from {small} {month} {year}. Questions go to {name} {name2}.",
        "Working hours are recorded daily in the portal. Overtime beyond {small} hours a month needs approval in advance.",
        "Business trips are booked by the travel desk. Second class is the rule for journeys under {small} hours.",
        "Visitors are registered at the gate, wear a badge and are accompanied. The list is destroyed after {number} days.",
        "Expenses are handed in with receipts within {small} weeks. Amounts above {number} are signed by two persons.",
        "Documents of the class internal are not sent to private addresses. Paper is shredded in the room next to the kitchen.",
        "Each department names a first aider and a fire warden. Drills take place in {month}.",
        "The canteen is subsidised with {small} per meal. Leftovers may be taken home after two o'clock.",
        "Sick leave is announced to the manager before nine. A certificate is needed from the {small}th day on.",
        "Holiday of the year that is not taken by the end of {month} of the next year expires.",
    ],
    "report": [
        "The survey covered {number} households in {place} between {month} and {month2} {year}. The response rate was {small} percent.",
        "Traffic on the ring road rose by {small} percent against {year}. The peak lies between seven and eight in the morning.",
        "The mean temperature in {month} was {small} degrees above the long-term value; rain fell on {small} days.",
        "Costs amounted to {number} thousand, of which {number2} thousand were for staff. The reserve was not touched.",
        "The inspection of the pumping station found {small} minor faults, all of which have been mended.",
        "Bird ringing at {place} recorded {number} animals of {small} species. The blackcap was the most frequent.",
        "Patients waited {small} days on average for an appointment at the clinic, {small} fewer than before.",
        "The network lost {number} hours through maintenance. Complaints fell in {month} and rose again in {month2}.",
        "Samples of soil were taken at {small} points around {place} and analysed for lead and zinc.",
        "The committee recommends to continue the trial until {month} {year} and to publish the figures.",
    ],
    "recipe": [
        "Mix {number} grams of flour with {small} grams of yeast and a pinch of sugar, and leave the dough in a warm place for {small} hours.",
        "Chop {small} onions and fry them in butter until they are golden. Add stock and simmer for {number} minutes.",
        "Whip the cream with vanilla, fold in the berries and chill for {small} hours. It serves {small}.",
        "Rub the joint with salt and thyme and roast it at {number} degrees until the juice runs clear.",
        "Slice the apples thinly, lay them like scales on the pastry and dust them with cinnamon.",
        "Boil {small} potatoes in their skins, peel them hot and press them through the ricer.",
        "The dish comes from {place}, where {name}'s aunt cooked it for weddings in {month}.",
        "Marinate the fish in lemon, dill and oil overnight. Turn it {small} times.",
        "Roll out the dough to {small} millimetres, cut rounds and bake them for {small} minutes on the upper shelf.",
        "Season with pepper, vinegar and a spoon of mustard. Serve with dark bread and radishes.",
    ],
    "contract": [
        "Between {name} & {name2} Ltd of {place} and the customer the following is agreed on {small} {month} {year}.",
        "The supplier delivers {number} units a quarter, packed in crates of {small}, free to the ramp in {place}.",
        "Invoices are payable within {small} days without deduction. Interest on arrears is {small} percent a year.",
        "Acceptance takes place within {small} working days. Defects are listed in a record that both sides sign.",
        "Each side names a contact person: {name} for the supplier, {name2} for the customer.",
        "Changes and additions need the written form. Oral side agreements have not been made.",
        "The total liability is limited to {number} thousand for each case of damage, except for intent.",
        "Subcontractors may be employed after notice of {small} weeks. They are bound by the same duties.",
        "Spare parts are kept available for {small} years after the last delivery.",
        "The contract runs until the end of {month} {year} and is extended by {small} months each time.",
    ],
}  # fmt: skip


def documents() -> Iterator[Written]:
    """The thousand, the same ones every time."""
    chance = random.Random(SEED)
    kinds = sorted(TEMPLATES)
    planted = {number: question for number, question in zip(_numbers(chance), QUESTIONS, strict=False)}
    for number in range(DOCUMENTS):
        question = planted.get(number)
        kind = question.kind if question else chance.choice(kinds)
        passages = [_filled(template, chance) for template in chance.sample(TEMPLATES[kind], chance.randint(4, 7))]
        if question:
            passages.insert(chance.randint(0, len(passages)), question.passage)
        yield Written(f"{kind}-{number:04}.pdf", tuple(passages))


def _numbers(chance: random.Random) -> list[int]:
    return chance.sample(range(DOCUMENTS), len(QUESTIONS))


def _filled(template: str, chance: random.Random) -> str:
    month, month2 = chance.sample(MONTHS, 2)
    name, name2 = chance.sample(NAMES, 2)
    return template.format(
        name=name,
        name2=name2,
        place=chance.choice(PLACES),
        month=month,
        month2=month2,
        year=chance.randint(2019, 2033),
        number=chance.randint(40, 900),
        number2=chance.randint(40, 900),
        small=chance.randint(2, 30),
    )


_HELD_OUT = frozenset(sorted(QUESTIONS, key=lambda one: hashlib.sha256(one.passage.encode()).digest())[::2])
