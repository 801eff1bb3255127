"""Names and words of English names: what a name in a text is of."""

from __future__ import annotations

from judge.audit.perturbations.edits import listed

WEEKDAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = listed("January February April June July August September October November December")
DATES = {*WEEKDAYS, *MONTHS, *(f"{day}s" for day in WEEKDAYS), "March", "May", "Christmas", "Easter"}
COUNTRIES = (
    "France", "Germany", "Italy", "Spain", "Portugal", "Sweden", "Norway", "Denmark", "Finland", "Poland", "Greece",
    "Turkey", "Russia", "Ukraine", "China", "Japan", "India", "Pakistan", "Australia", "Canada", "Mexico", "Brazil",
    "Argentina", "Chile", "Egypt", "Kenya", "Nigeria", "Iran", "Iraq", "Syria", "Israel", "Yemen", "England",
    "Scotland", "Ireland", "Wales", "Britain", "America", "Austria", "Belgium", "Switzerland", "Hungary", "Vietnam",
    "Thailand", "Indonesia", "Malaysia", "Nepal", "Libya", "Tunisia", "Morocco", "Cuba", "Colombia", "Peru", "Kuwait",
)  # fmt: skip
CITIES = (
    "London", "Paris", "Berlin", "Rome", "Madrid", "Lisbon", "Vienna", "Prague", "Warsaw", "Moscow", "Athens", "Cairo",
    "Tokyo", "Beijing", "Delhi", "Mumbai", "Sydney", "Melbourne", "Toronto", "Chicago", "Boston", "Houston", "Dallas",
    "Seattle", "Manchester", "Liverpool", "Birmingham", "Leeds", "Glasgow", "Edinburgh", "Dublin", "Brussels",
    "Amsterdam", "Munich", "Hamburg", "Milan", "Barcelona", "Baghdad", "Tehran", "Nairobi", "Los Angeles", "New York",
    "San Francisco", "Hong Kong", "Bristol", "Cardiff", "Sheffield", "Newcastle",
)  # fmt: skip
STATES = (
    "Alabama", "Alaska", "Arizona", "Arkansas", "California", "Colorado", "Connecticut", "Florida", "Hawaii", "Idaho",
    "Illinois", "Indiana", "Iowa", "Kansas", "Kentucky", "Louisiana", "Maine", "Maryland", "Massachusetts", "Michigan",
    "Minnesota", "Mississippi", "Missouri", "Montana", "Nebraska", "Nevada", "New Jersey", "New Mexico", "Ohio",
    "Oklahoma", "Oregon", "Pennsylvania", "Tennessee", "Texas", "Utah", "Vermont", "Wisconsin", "Wyoming",
)  # fmt: skip
CLUBS = (
    "Arsenal", "Chelsea", "Tottenham", "Everton", "Liverpool", "Southampton", "Sunderland", "Burnley", "Aston Villa",
    "West Ham", "Crystal Palace", "Manchester United", "Manchester City", "Leicester City", "Hull City", "Stoke City",
    "Swansea City", "Real Madrid", "Atletico Madrid", "Barcelona", "Bayern Munich", "Borussia Dortmund", "Juventus",
    "Inter Milan", "Porto", "Ajax", "Celtic", "Rangers", "Newcastle", "Leeds United", "Fulham", "Middlesbrough",
)  # fmt: skip
NATIONS = (
    "British", "English", "Scottish", "Irish", "Spanish", "Polish", "Turkish", "Swedish", "Danish", "Finnish", "French",
    "Dutch", "German", "Greek", "Italian", "American", "Australian", "Canadian", "Russian", "Ukrainian", "Indian",
    "Pakistani", "Iranian", "Israeli", "Egyptian", "Mexican", "Brazilian", "Chinese", "Japanese", "Portuguese",
    "Belgian", "Austrian", "Norwegian", "Swiss", "Welsh", "Nigerian", "Kenyan", "Argentine", "Korean", "Hungarian",
)  # fmt: skip
PEOPLE = (
    "David Carver", "Laura Whitfield", "Peter Langley", "Helen Marsh", "Simon Hargreaves", "Anna Delaney",
    "Mark Ellison", "Julia Prentice",
)  # fmt: skip
LISTED = (
    {day: "weekday" for day in WEEKDAYS}
    | {month: "month" for month in MONTHS}
    | {country: "country" for country in COUNTRIES}
    | {city: "city" for city in CITIES}
    | {nation: "nation" for nation in NATIONS}
    | {state: "state" for state in STATES}
    | {club: "" if club in CITIES else "club" for club in CLUBS}
)
TITLES = frozenset(
    listed(
        "Mr Mrs Ms Miss Dr Sir Lady Lord Prof Professor President Prime Minister Senator Governor Mayor Judge "
        "Captain Detective Inspector Sergeant Officer Chief Constable King Queen Prince Princess Pope Coach "
        "Manager Director Chancellor Secretary General Commissioner Chairman Reporter Editor Striker "
        "Midfielder Goalkeeper Defender Star"
    )
)
NOT_PEOPLE = frozenset(
    listed(
        "University College School Hospital Airport Church Museum Stadium Arena Centre Center Hotel Prison Palace Zoo "
        "Street Road Lane Avenue Park Square Bridge River Lake County Island Islands Beach Bay Hill Mountain Valley "
        "House Ocean Sea Station Tower Yard Cape Coast Port Pacific Atlantic Indies Canyon Creek Falls Fort Mount "
        "League Cup Championship Championships Open Tour Games Series Festival Award Awards Prize Day Week "
        "FC AC Real Inter United City Town Rovers Athletic Albion Villa Palace Police Department Council Committee "
        "Court Party Club Bank Group Company Corporation Corp Inc Ltd Airlines Air Association Agency Office Congress "
        "Senate Army Navy Force Union Nations Board Times News Post Mail Daily Evening Act Bill Show State States "
        "Kingdom Empire Republic North South East West New San Santa Los Las Saint St Great Middle World National "
        "International Royal American Premier Facebook Twitter Instagram YouTube Google Apple Microsoft Amazon Line "
        "Bus Black White Red Blue Family Foundation Institute Trust Health Human Rights"
    )
)
"""What is no part of a person's name, or may as well be a part of another one."""
HEADS = frozenset(
    listed(
        "University College School Hospital Airport Museum Stadium Arena Hotel Prison Zoo Street Road Lane Avenue "
        "County Island Islands Beach Valley Ocean Sea League Cup Championship Championships Open Festival Award "
        "Awards Prize FC Rovers Athletic Albion Police Council Party Company Corporation Airlines Agency Army Navy "
        "Times Act"
    )
)
"""Last words that tell what a name is of: names of one kind share theirs."""
NO_NAMES = frozenset(listed("TV UNK DVD CEO PM CCTV DNA GPS IT PC ID II III AM OK God Mr St"))
MEN = frozenset(
    listed(
        "David Peter Simon Mark John James Robert Michael William Richard Thomas Charles Daniel Matthew "
        "Anthony Steven Paul Andrew Kevin Brian George Edward Ronald Jason Jeffrey Ryan Jacob Gary Eric "
        "Jonathan Stephen Justin Scott Frank Carlos Jose Steve Chris Tim Tom Joe Jamie Jack Harry Adam Ben "
        "Luke Nathan Aaron Alan Alex Alexander Allen Andre Andy Antonio Arsene Arthur Barack Barry Bill Billy "
        "Bob Bobby Brad Bradley Brendan Bruce Bruno Cameron Christopher Craig Cristiano Danny Darren Dave "
        "Dean Dennis Diego Donald Doug Douglas Dylan Ed Elon Ethan Fernando Francis Gareth Gerard Glenn "
        "Graham Greg Gregory Henry Howard Hugh Ian Ivan Jeff Jeremy Jerry Jim Jimmy Joel Johnny Jon Jordan "
        "Jorge Josh Joshua Juan Keith Ken Kenneth Kyle Larry Lee Leo Lewis Liam Lionel Louis Luis Marcus "
        "Mario Martin Matt Max Mike Mitt Mohammed Muhammad Neil Neymar Nick Nicholas Nigel Norman Oliver "
        "Oscar Patrick Pedro Pete Phil Philip Rafael Ralph Ray Raymond Rick Ricky Rob Robbie Robin Rod Rodney "
        "Roger Ron Ronnie Ross Roy Ruben Russell Sam Samuel Sean Sebastian Sergio Stan Stewart Stuart Ted "
        "Terry Theo Tiger Timothy Todd Tony Trevor Tyler Vincent Vladimir Walter Warren Wayne Wes Zlatan Zac "
        "Floyd Manny"
    )
)
WOMEN = frozenset(
    listed(
        "Laura Helen Anna Julia Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen "
        "Nancy Lisa Betty Margaret Sandra Ashley Emily Donna Michelle Carol Amanda Melissa Stephanie Rebecca "
        "Sharon Kate Katie Amy Rachel Emma Nicole Samantha Christine Catherine Maria Diana Becky Jane Alice "
        "Claire Hannah Sophie Abigail Alexandra Alison Amber Andrea Angela Angelina Ann Anne Annie Beth "
        "Bethany Brenda Britney Carla Caroline Charlotte Cheryl Chloe Christina Cindy Danielle Dawn Debbie "
        "Deborah Denise Dorothy Eleanor Ella Ellen Erin Eva Gemma Georgia Gina Grace Hayley Heather Heidi "
        "Hillary Holly Jacqueline Janet Jean Jenna Jennie Jenny Jill Joan Joanna Joanne Judith Judy Julie "
        "Karin Kathleen Kathryn Katherine Kathy Katy Kayla Kelly Kendall Kerry Kim Kimberly Kirsten Kirsty "
        "Kristen Lauren Leah Lily Lindsay Lindsey Lorraine Louise Lucy Lynn Madison Marie Martha Megan "
        "Melanie Meghan Miley Miranda Miriam Molly Monica Naomi Natalie Natasha Nina Nora Olivia Pamela Paula "
        "Penelope Pippa Priscilla Rihanna Robyn Rosie Ruth Sally Sara Selena Serena Shannon Sheila Sheryl "
        "Sienna Sonia Stella Sue Suzanne Sylvia Tanya Tara Taylor Teresa Tina Tracey Tracy Valerie Vanessa "
        "Venus Veronica Victoria Virginia Wendy Yvonne Zara Zoe"
    )
)
