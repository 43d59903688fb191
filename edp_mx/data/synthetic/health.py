"""Health: medicines, measurements, symptoms, care ("refill my aspirin prescription")."""

from __future__ import annotations

from edp_mx.data.synthetic.grammar import Corpus, pairs
from edp_mx.data.synthetic.values import patterns, read_recipes

INTENTS = {
    "set_medication_reminder": """
        remind me to take (my |){medicine} (at |)({time}|{frequency}|{date})
        set a (reminder|alarm) for (my |)({medicine}|{test}|{exercise})
        remind me to take {dosage} of {medicine} {frequency}
        remind {person} to take (her|his) {medicine} at {time}
        i (need|have) to take ({medicine}|{dosage}) {frequency}
        remind me {frequency} to take (my|) {medicine}
        remind me about my {medicine} {date}
        set a {medicine} reminder for {time}
        tell me when it 's time for my {medicine}
        remind me to check my {measurement} {frequency}
        remind {person} about {medicine}
        ({medicine} {frequency}|{medicine} {time}|{medicine}|{frequency})
        remind me to (take|do) my {exercise} at {time}
        (cancel|stop|delete) my {medicine} reminder
    """,
    "refill_prescription": """
        refill my {medicine} (prescription|)
        (i need|order) (more |a refill of |)({medicine}|{form}s)
        refill (my|) {person} 's {medicine}
        refill prescription (number |){prescription_number}
        (order|get) my {medicine} from {pharmacy}
        (i am|i'm) (out of|running low on) {medicine}
        send my {medicine} prescription to {pharmacy}
        renew my {medicine}
        can i get (a|another) refill (on|of) my {medicine}
        get {quantity} more of my {medicine}
        ({medicine}|{dosage} of {medicine}|{dosage} {medicine}|{pharmacy})
        (add|order) {medicine}
        (call|ask) {pharmacy} (for|about) my {medicine}
        get my {medicine} from {clinic}
        reorder {dosage} {medicine}
    """,
    "log_measurement": """
        my {measurement} is {value}
        my {measurement.pressure} (is|was) {value.pressure} (|{date.past})
        (log|record) {value.weight} (for|as) my {measurement.weight}
        my {measurement.pulse} is {value.pulse}
        (log|record) my {measurement} (as|at) {value}
        (log|record|enter) (a|) {measurement} of {value} (|for {person})
        i (weigh|weighed) {value.weight} {date.past}
        (add|save) {value} to my {measurement} log
        {person} 's {measurement} was {value} {date.past}
        my {measurement} at {time} was {value}
        record {value} for {measurement}
        ({measurement} {value}|{value}|{measurement})
        (log|add) {value}
        my {test} (is|was) {value}
        i slept {duration.sleep} last night
    """,
    "query_measurement": """
        what (is|was) my {measurement} {date.past}
        what was my last {measurement} (reading|)
        (show|tell) me my {measurement} (history|) (|for {date.past})
        how (many|much) {measurement.count} did i (get|have) {date.past}
        what is {person} 's {measurement}
        ({measurement}|{measurement} {date.past}|{person} {measurement})
        check my {measurement}
        (check|show) {person} 's {test}
        is {value} a (good|normal|high) {measurement}
        what 's a normal {measurement} for {person}
        what was my average {measurement} (over the last {duration}|{date.past})
    """,
    "symptom_query": """
        what (causes|can cause) ({symptom}|{condition})
        what should i do (for|about) (a|my) ({symptom}|{condition}|{body_part})
        what helps (with|) (a|) ({symptom}|{condition})
        what are the symptoms of {condition}
        how do i treat ({condition}|{symptom}) (at home|)
        why does my {body_part} (hurt|ache)
        is {symptom} a (symptom|sign) of {condition}
        how long does (a |)({condition}|{symptom}) last
        how do i get rid of (a|) {symptom}
        ({symptom}|{condition})
        i have a {symptom} what should i do
        (can|does) {condition} cause {symptom}
        what {food} (is|are) good for {condition}
        tell me about {condition}
        is ({condition}|{symptom}) contagious
        what to do when {person} has a {symptom}
    """,
    "medicine_info": """
        what are the side effects of {medicine}
        what is (a |)({medicine}|{test}|{form}) (used |)for
        how much {medicine} can i (take|give {person})
        (does|can) {medicine} cause {symptom}
        can i take {medicine} (with|and) ({medicine}|{food})
        what is the dose of {medicine} for {person}
        is {medicine} (safe|good) for {condition}
        does {medicine} interact with {medicine}
        can i (drink|eat|have) {food} with {medicine}
        is {medicine} the same as {medicine}
        tell me about {medicine}
        ({medicine} {dosage}|{medicine} {condition}|{medicine} {food})
        can {person} (have|take) {dosage} {medicine}
        is {food} bad (with|for) {condition}
        how (long|often) should i take {medicine}
    """,
    "book_appointment": """
        (make|book|schedule) an appointment (with|at) ({provider}|{clinic}|{pharmacy})
        (make|book) an appointment with (a|my) {specialty} (|for {date})
        i need to see (a|my) {specialty} {date}
        book {provider} for {date} at {time}
        (schedule|book) a {test} (for {date}|at {clinic})
        get {person} in to see {provider} about (his|her) {condition}
        (schedule|make) an appointment for my {body_part}
        (see|call) {provider} {date}
        ({specialty}|{provider}|{test}|{clinic}) {date}
        get me a {test} at {pharmacy}
        make an appointment for {person} {date}
        make an appointment at {provider} 's {clinic_type}
        book me (in|) (at|with) ({clinic}|{provider}) ({date}|{time})
        (reschedule|move) my appointment with {provider} to {date}
    """,
    "log_intake": """
        i (just |)(had|ate) (a|some|) {food} for {meal}
        (log|add|record) ({quantity}|{value}) {food}
        i (took|just took) my {medicine} (|{date.past}|at {time})
        log {dosage} of {medicine}
        (add|log) ({food}|{medicine}) (to|for|at) {meal}
        i (drank|had|took) {quantity} ({food}|{medicine})
        {person} (took|had) {dosage} of {medicine} at {time}
        i (had|took) {medicine} for {meal}
        ({quantity} {food}|{food}|{medicine} {time}|{meal} {food})
        i (had|took) {food} {frequency}
        (track|log) my {meal}
        mark my {medicine} as taken
    """,
    "query_appointment": """
        when is my (next|) appointment (|with {provider})
        do i have (an appointment|a {test}) {date}
        what time is my {specialty} appointment
        when do i see {provider}
        who is my {date} appointment with
        what do i have {date}
        ({provider}|{test}|{specialty}) {date}
        when is my {test}
        when is {person} 's {specialty} appointment
        cancel my appointment with {provider}
        cancel my {specialty} appointment {date}
    """,
    "log_exercise": """
        (log|record|track) (a|my) ({duration}|{quantity}) {exercise}
        i (went for|did) a {exercise} (|for {duration})
        start a {exercise} (workout|)
        (log|add) {quantity} of {exercise}
        i did {duration} of {exercise} {date.past}
        (stop|end) my {exercise}
        ({exercise}|{duration} {exercise}|{quantity} {exercise}|{duration})
        add {exercise} {date.past}
        start a {duration} {exercise}
    """,
    "query_medication": """
        (did i take|have i taken) my {medicine} {date.past}
        what (medicine|medication|pills) do i take {frequency}
        what am i taking for {condition}
        what {medicine} do i take {frequency}
        when did i last take {medicine}
        did {person} take (his|her) {medicine}
        what 's my dose of {medicine}
        how many {medicine} (pills |)do i have left
        when is my next {medicine} (due|)
        which {form} do i take for {condition}
    """,
    "find_provider": """
        find (a|me a) {specialty} (near me|in {place})
        find (a|the nearest) {clinic_type} (near me|)
        who is the best {specialty} in {place}
        is there a {specialty} that takes {insurance}
        where is {clinic}
        (what time|when) does {pharmacy} (open|close)
        find (a doctor|someone) for (my |)({condition}|{symptom}|{body_part}) (|in {place})
        ({specialty}|{clinic}|{specialty} in {place}|{provider})
        (find|show me) {provider}
        {clinic} in {place}
        call {provider}
        get the number for {clinic}
    """,
    "query_results": """
        (did my {test} results come|are my {test} results) in
        (read|show) me my {test} results
        what were (the|) results of my {test}
        (read|show) me my {measurement} results
        ({test}|{test} results|{measurement} results|{test} {date.past})
        do i have (|any) results from {provider}
        are {person} 's {test} results back from {clinic}
        when will my {test} (be ready|results come)
    """,
    "log_symptom": """
        (i have|i've had) (a|) ({symptom}|{condition}) (|since {date.past}|for {duration})
        my {body_part} (hurts|is sore|has been hurting) (|since {date.past})
        log (a|) {symptom}
        ({symptom}|{condition}|{body_part} {symptom}|{symptom} {date.past})
        i had {condition} {date.past}
        log {condition}
        add {medicine} to my allergies
        {person} has {condition}
        i am allergic to (medicine|) {medicine}
        i feel {symptom} (|in my {body_part})
        {person} has (a|) ({symptom}|{condition})
        add {condition} to my (health |)(history|record)
        add ({food}|{medicine}|{condition}) to my (allergies|history)
    """,
    "order_status": """
        where is my ({medicine}|{test}|{form}) (order|)
        is (my|{person} 's) {medicine} (prescription |)ready (|at {pharmacy})
        when will my {medicine} (arrive|be delivered|be ready)
        (track|check) (prescription|order) {prescription_number}
        check my {medicine}
        is {clinic} (open|ready with my {test})
        has {pharmacy} (filled|sent) my {medicine}
    """,
    "insurance_query": """
        does {insurance} cover {medicine}
        (is {provider} in|does {provider} take) {insurance}
        how much is (a|) {test} with {insurance}
        what 's my {insurance} member number
        my member number is {prescription_number}
        does my insurance cover (a|) {specialty}
    """,
}

SLOTS = """
    medicine: {common_drug} *5 | {rare_drug} *5 | {drug_class} *2 | {rare_drug} xr *0.3 |
        {common_drug} {strength} *0.5
    dosage: {strength} {dose_unit} *4 | {small} {dose_unit} *3 | {figure} units *0.7 |
        half a {form} *0.5
    frequency: every {day_part} *4 | daily *2 | {times} a day *2 | every {small} hours *2 |
        every {weekday} | at bedtime *0.7 | with {meal} | twice a week *0.5
    form: {form}
    person: my {relation} *3 | {first_name} *3 | {relation} *3
    provider: doctor {known_doctor} *5 | doctor {first_name} | dr {known_doctor} *2 |
        {full_name} *0.7 | my doctor *1.5 | nurse {first_name} *0.4
    specialty: {specialty}
    pharmacy: {common_store} *3 | {store_name} *2 | {last_name} drugs | {place} pharmacy *1.5 |
        the pharmacy
    clinic: {place} {clinic_word} *3 | saint {first_name} 's | {last_name} {clinic_word} |
        {place} general
    clinic_type: {clinic_word} *3 | pharmacy | emergency room
    insurance: {brand} {plan_end} *2 | {plan_start} {plan_end} *2 | {brand} | medicare
    prescription_number: {phone} | {figure}{figure}{figure} *3 | {figure} {figure} {figure} |
        rx {figure}{figure}{figure}
    measurement: {measure}
    measurement.pressure: blood pressure *4 | pressure | bp
    measurement.weight: weight *4 | body weight
    measurement.pulse: heart rate *3 | pulse *2 | resting heart rate
    measurement.count: steps *3 | sleep *3 | calories *2 | water | glasses of water *0.5
    value: {number} *3 | {reading} over {reading} *2 | {reading} *3 | {number} {unit_name} *3 |
        {reading} point {unit} | {reading} {unit_name} *2
    value.pressure: {reading} over {reading} *4 | {reading} {reading}
    value.weight: {reading} pounds *3 | {reading} *2 | {reading} point {unit} | {tens} kilos *0.6
    value.pulse: {reading} *3 | {reading} bpm | {tens} | {tens} {unit}
    symptom: {symptom} *6 | {condition} | {body_part} pain *2 | sore {body_part} | {bad} {symptom}
    condition: {condition} *5 | {symptom} *2 | {rare_condition}
    body_part: {body_part} *4 | {side} {body_part}
    test: {result} *4 | {body_part} {scan} | {measure} test *0.7 | flu shot *0.5
    food: {food} *5 | {food} and {food} | {cooked} {food}
    meal: {meal}
    quantity: {number} *3 | a cup of *0.5 | {small} bowls of *0.5 | {small} servings of *0.5 |
        half a *0.3 | {number} {unit_name} of
    exercise: {exercise} *4 | {adverb} {exercise} *0.7 | {small} mile {exercise}
    date: {date}
    date.past: {past_day} *3 | {weekday} | last {weekday}
    time: {time}
    duration: {duration}
    duration.sleep: {small} hours *3 | {small} and a half hours | all night *0.3
    place: {place}
"""

CORPUS = Corpus(
    name="health",
    intents=INTENTS,
    slots=read_recipes(SLOTS),
    siblings=pairs(
        """
        symptom condition, frequency date, dosage quantity, value quantity, provider
        specialty, clinic pharmacy, time frequency, person provider, test measurement,
        body_part symptom
        """
    ),
    asides=patterns(
        """
        when you get a chance *2 | doctor {last_name} told me to | i feel {bad} today |
        because of my {body_part} | {first_name} keeps asking | i forgot {past_day} |
        not the {common_drug} | it 's {weekday} already | before my {meal} | not {number} |
        the one from {common_store} | i saw it on {brand} *0.7
        """
    ),
)
