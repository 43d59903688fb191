"""What fills the slots: fictional values with a short head that all use and a long tail.

In the notation of `values.read_recipes`; lists and pools too long to write out stand at the end.
A pool is what recurs (a saved contact, a known title); a pattern drawn afresh is what no training
set holds. Phone numbers are of the 555 01xx kind, which is reserved for fiction.
"""

from __future__ import annotations

from typing import Dict

from edp_mx.data.synthetic import words as w
from edp_mx.data.synthetic.values import Pool, Recipe, Words, read_recipes

PEOPLE = """
first_name: {common_first} *0.8 | {rare_first} *0.2
last_name: {common_last} *0.3 | {rare_last} *0.7
full_name: {first_name} {last_name}
relation = mom, dad, parents, wife, husband, sister, brother, daughter, son, boss, grandma,
    boyfriend, girlfriend, grandpa, aunt, uncle, cousin, kids, roommate, neighbor, landlord,
    babysitter, best friend, mother in law, father in law, niece, nephew, partner, coworker,
    big sister, little brother, stepmother, fiance, godmother, sister in law, ex, coach, tutor,
    nanny
"""
NUMBERS = """
digit ~ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
number: {small} *5 | {figure} *4 | {tens} *2 | {tens} {unit}
phone: {area} 555 01{digit}{digit} *4 | 555 01{digit}{digit} *2 | 01{digit}{digit} *2 |
    {digit}{digit}{digit}{digit} *2 | 1 {area} 555 01{digit}{digit} |
    five five five oh one {unit} {unit} | {unit} {unit} {unit} {unit}
decade = nineties, eighties, seventies, sixties, two thousands, fifties, forties
"""
TIMES = """
hour ~ 7, 8, 9, 10, six, seven, eight, 5, 6, 3, 4, nine, ten, three, 1, 2, 11, 12, five
minute ~ 30, 15, 45, thirty, fifteen, 20, 05, 50, ten, 40
half = p m, a m, pm, am, tonight, in the morning, in the evening
time: {hour} {half} *4 | {hour} {minute} {half} *3 | {hour} {minute} | {hour} o'clock |
    {part} *2 | half past {hour} *0.6 | quarter to {hour} *0.5
part = tonight, this morning, this evening, this afternoon, noon, midnight, bedtime
weekday ~ monday, tuesday, wednesday, thursday, friday, saturday, sunday
month ~ january, february, march, april, may, june, july, august, september, october, november,
    december
date: {near_day} *6 | {weekday} *4 | next {weekday} *2 | this {weekday} | {month} {ordinal} *2 |
    the {ordinal} of {month} | the {ordinal} | {month} {figure} *0.5
near_day = tomorrow, today, next week, this weekend, this week, the day after tomorrow,
    next month, the weekend, this month
past_day = today, yesterday, last night, this morning, last week, this week, last month,
    the other day, two days ago, last weekend
span_unit = minutes, hours, days, weeks
duration: {number} {span_unit} *6 | an hour | half an hour | a week *0.5 |
    {small} and a half hours *0.5 | a few minutes *0.5
"""
HOME = """
room = kitchen, living room, bedroom, office, basement, garage, bathroom, kids room,
    dining room, den, guest room, upstairs, playroom, attic, nursery, hallway, laundry room,
    sunroom, patio
gadget = speaker, tv, phone, tablet, echo, display, headphones, laptop, watch, screen,
    projector, computer, stick, console, soundbar
brand_start ~ vo, flix, cha, pla, zi, lu, mo, tri, ko, ne, ra, bee, sky, pix, wavy
brand_end ~ ra, xo, ter, va, go, ly, me, nova, tel, cast, play, zo, lio, max, hub
"""
CALLS = """
number_kind = cell, home, work, mobile, office, house, school, second, landline
call_kind = video, conference, group, voice, speaker, audio, three way
business_kind = pharmacy, dentist, bank, pizza place, school, vet, plumber, library,
    doctor 's office, hair salon, gym, post office, bakery, garage, hotel
business_end = pizza, dental, motors, bakery, cafe, bank, grill, market, flowers, cabs
business_name: {last_name} {business_end} *2 | {first_name} 's {business_end} |
    {place} {business_end}
known_app = whatsapp, skype, messenger, zoom, facetime, signal, viber
group_owner = family, work, soccer, book club, school, church, college, neighborhood
group: the {group_owner} group *2 | {group_owner} chat *2 | team {place} | the {last_name}s |
    the {team_end} *0.7
field = address, email, birthday, number, work address, last name, cell, extension
"""
SPOKEN = """
plan = call me back, come home, pick up some milk, dinner is ready, good night, happy birthday,
    thank you, the game is on, i love you, hurry up, get the keys, feed the dog, see you soon,
    the package came, take out the trash, wait for me, good luck, stop by later,
    the baby is asleep, bring an umbrella
activity_now = running late, on my way, at the store, leaving work, stuck in traffic,
    almost there, at the gym, cooking dinner, at the doctor, still here
message: i am {activity_now} *4 | i'm {activity_now} *3 | {plan} *6 |
    i will be there in {duration} *2 | i'll be there at {time} *2 | can you call {first_name} |
    {first_name} is {activity_now} | meet me in {place} at {time} | don't forget {date} |
    are we still on for {date} | what do you want for {meal} | my new number is {phone} *0.7 |
    the code is {digit}{digit}{digit}{digit} *0.7
meal = dinner, lunch, breakfast, brunch, a snack, dessert
"""
CARE = """
drug_class = blood pressure medicine, allergy pills, antibiotics, inhaler, eye drops,
    birth control, sleeping pills, pain killers, heart pills, cough syrup,
    cholesterol medication, water pills, thyroid pills, antacids
symptom = headache, fever, cough, sore throat, rash, nausea, back pain, chest pain, dizziness,
    runny nose, stomach ache, cramps, chills, fatigue, joint pain, shortness of breath,
    swelling, heartburn, vomiting, itching, blurred vision, migraine, hives, toothache,
    numbness, night sweats, ear ache, insomnia, palpitations, dry mouth, stiff neck
condition = diabetes, asthma, high blood pressure, depression, arthritis, anxiety, migraine,
    flu, allergies, covid, insomnia, anemia, eczema, acid reflux, pneumonia, gout, bronchitis,
    vertigo, high cholesterol, sinusitis, epilepsy, lupus, shingles, heartburn, sciatica
body_part = back, head, stomach, knee, chest, throat, neck, shoulder, ear, foot, eye, ankle,
    hip, wrist, elbow, jaw, left arm, lower back, right leg, tooth
specialty = dentist, pediatrician, dermatologist, cardiologist, therapist, eye doctor,
    gynecologist, psychiatrist, neurologist, allergist, podiatrist, urologist, surgeon,
    nutritionist, ent, orthopedist, chiropractor, endocrinologist, rheumatologist, oncologist
measure = blood pressure, weight, blood sugar, heart rate, temperature, glucose, pulse,
    oxygen level, steps, sleep, cholesterol, bmi, water intake, calories, body fat, peak flow
unit_name = pounds, degrees, kilos, steps, bpm, glasses, calories, percent, ounces, points,
    hours, cups
strength ~ 10, 20, 5, 500, 50, 200, 81, 325, 40, 25, 100, 400
dose_unit = milligrams, mg, units, pills, tablets, drops, puffs, ml, capsules, doses
food = banana, salad, toast, chicken, pizza, apple, coffee, oatmeal, yogurt, eggs, rice, soup,
    sandwich, burger, orange juice, pasta, fish, steak, cookies, bagel, cereal, tacos, beans,
    ice cream, peanuts, cheese, grapes, broccoli, smoothie, avocado, tofu, pancakes, tuna
exercise = walk, run, yoga, bike ride, swim, hike, jog, workout, pilates, weights, tennis,
    stretching, rowing, dance, boxing, spin class, treadmill
common_store = walgreens, cvs, the pharmacy on main street, rite aid, costco
clinic_word = clinic, medical center, hospital, family practice, urgent care
result = blood test, x ray, mri, covid test, lab work, allergy test, biopsy, ct scan,
    cholesterol panel, physical, ultrasound, urine test, ekg, thyroid test
day_part = morning, night, day, evening, afternoon, other day, week, month
times = once, twice, three times, four times
form = pill, tablet, capsule, drop, inhaler, patch, shot, cream, syrup, spray
bad = bad, really bad, mild, severe, constant, terrible, slight, sharp
side = left, right, upper, lower
scan = x ray, mri, scan, ultrasound, surgery, exam
cooked = fried, grilled, baked, hot, iced, homemade, low fat, spicy, leftover
adverb = morning, quick, evening, brisk, easy, indoor, long
rare_condition: {last_name} disease *2 | {last_name} syndrome | chronic {symptom}
plan_start = silver, gold, bronze, premium, basic, family, blue, senior, platinum
plan_end = care, choice, shield, ppo, hmo, plus, plan, health, advantage
"""
# Films, series and songs are named by the same rules: only knowing them tells which.
TITLES = """
any_title: the {adjective} {noun} *4 | {adjective} {noun} *4 | the {noun} *2 | {noun} *2 |
    {gerund} {common_first} *2 | {gerund} the {noun} *1.5 | {noun} of {place} *1.5 |
    the {noun} and the {noun} | {common_first} and {common_first} | a {noun} in {place} |
    {place} | {common_first} *0.7 | my {adjective} {noun} | {noun} at {hour} *0.5 |
    {small} {adjective} days *0.7 | how to love a {noun} *0.5 |
    the {noun} who came to {meal} *0.4 | {place} {noun} *1.5
film_mark: return to {place} | the {noun} part {unit} | {noun} {unit} | the curse of {place}
series_mark: {place} nights | the {last_name} family | law of {place} |
    {common_first} 's {noun} | keeping up with the {last_name}s
title_of_series: {any_title} *3 | {series_mark}
title_of_song: {any_title} *3 | {gerund} you | i want your {noun} *0.5
team_end = tigers, eagles, bears, lions, hawks, giants, kings, wolves, rangers, united
nickname: {team_end}
channel_start = abc, cnn, espn, hbo, fox, nbc, cbs, bbc, mtv, disney, food, history
channel_end = news, sports, kids, one, two, plus, world, movies, network, channel
genre = comedy, horror, action, drama, romantic comedy, documentary, thriller, science fiction,
    sci fi, animated, western, musical, fantasy, crime, family, war, anime, reality, mystery,
    superhero, christmas, cooking, true crime, kung fu, zombie, period drama, stand up, nature
language = spanish, english, french, hindi, japanese, german, korean, italian, chinese,
    portuguese, arabic, russian, polish, dutch, swedish, tamil
quality = hd, four k, high definition, 1080 p, ultra hd, low quality, 720 p
streaming = netflix, hulu, prime video, youtube, disney plus, hbo max, peacock, tubi
app_end = plus, max, tv, video, kids, movies, stream, go
topic = space, world war two, dinosaurs, cooking, sharks, love, dogs, climate change, music,
    baseball, robots, friendship, trains, politics, magic, history
sport = football, baseball, basketball, soccer, hockey, tennis, golf, cricket, boxing
span_short = minutes, seconds, hours, minute
character_end = the great, the brave, man, woman, bot, the dog, the cat, the wizard
"""
UNITS = w.words("one two three four five six seven eight nine")
TEENS = w.words(
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
)
TENS = w.words("twenty thirty forty fifty sixty seventy eighty ninety")
ORDINALS = w.words(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
LONG: Dict[str, Recipe] = {
    "common_first": Words(w.FIRST_NAMES, 0.6),
    "rare_first": Words(w.combine(w.NAME_STARTS, w.GIVEN_ENDS), 0.4),
    "common_last": Words(w.LAST_NAMES, 0.5),
    "rare_last": Words(w.combine(w.NAME_STARTS, w.NAME_MIDDLES, w.NAME_ENDS), 0.6),
    "saved_contact": Pool("{full_name}", 30_000, 0.6),
    "known_doctor": Pool("{last_name}", 8_000, 0.6),
    "known_actor": Pool("{full_name}", 20_000, 0.6),
    "known_director": Pool("{full_name}", 6_000, 0.6),
    "place": Words(w.combine(w.NAME_STARTS, w.PLACE_ENDS), 0.7),
    "brand": Pool("{brand_start}{brand_end}", 200, 1.0),
    "store_name": Pool("{brand}", 150, 1.0),
    "unit": Words(UNITS, 0.5),
    "small": Words(UNITS[1:] + TEENS, 0.7),
    "tens": Words(TENS, 0.4),
    "ordinal": Words(ORDINALS, 0.3),
    "figure": Words([str(number) for number in range(2, 100)], 0.7),
    "reading": Words([str(number) for number in range(60, 220)], 0.0),
    "year": Words([str(year) for year in range(2024, 1939, -1)], 0.5),
    "area": Words([str(area) for area in range(201, 990) if area % 100 != 11], 0.0),
    "common_drug": Words(w.MEDICINES, 0.6),
    "rare_drug": Words(w.combine(w.DRUG_STARTS, w.DRUG_MIDDLES, w.DRUG_ENDS), 0.5),
    "adjective": Words(w.ADJECTIVES, 0.3),
    "noun": Words(w.NOUNS, 0.3),
    "gerund": Words(w.GERUNDS, 0.3),
    "known_film": Pool("{any_title}", 40_000, 0.6),
    "known_series": Pool("{title_of_series}", 40_000, 0.6),
    "known_song": Pool("{title_of_song}", 30_000, 0.6),
    "team": Pool("{place} {team_end}", 400, 0.8),
}
RECIPES: Dict[str, Recipe] = {
    **read_recipes(PEOPLE + NUMBERS + TIMES + HOME + CALLS + SPOKEN + CARE + TITLES),
    **LONG,
}
