"""Communication: calls, messages, contacts ("call my parents at 0123")."""

from __future__ import annotations

from edp_mx.data.synthetic.grammar import Corpus, pairs
from edp_mx.data.synthetic.values import patterns, read_recipes

INTENTS = {
    "call": """
        call ({contact_name}|{business}|{group_name}|{relation})
        (call|phone|ring|dial) my {relation}
        (call|phone) {contact_name} (|again) on (my {device}|the {device}|{app})
        call my {relation} at {phone_number}
        (dial|call) {phone_number}
        call {contact_name} at {phone_number}
        call {contact_name} 's {number_type}
        (call|ring) {contact_name} on (his|her|the) {number_type} (|phone)
        (make|place|start) a {call_type} call to {contact_name}
        {call_type} call (my {relation}|{contact_name})
        call (the|a) {business}
        call the {business} in {place}
        get me {contact_name} on the (phone|line)
        call {relation}
        call {business}
        (get|give) (my {relation}|{contact_name}) a call
        i (want|need) to (talk|speak) to {contact_name}
        ({contact_name}|{relation}|{group_name}) call
        call {contact_name} using {app}
        call {group_name}
        (call|ring) {contact_name} (at|in) {place}
        ({contact_name}|{relation}|{phone_number}|{business}|{number_type})
        call {device}
        message {contact_name} to call me
    """,
    "send_message": """
        (text|message) ({contact_name}|{relation}|{group_name}) {message}
        tell my {relation} {message}
        tell {contact_name} (that |){message}
        send a (text|message) to ({contact_name}|{group_name}|{business})
        (text|message) my {relation} (|that) {message}
        send {contact_name} a (message|text) (saying|that says) {message}
        send {message} to ({contact_name}|{group_name}|{relation})
        let {contact_name} know (that|) {message}
        (message|tell) {group_name} {message}
        (send|write) {contact_name} (a|an) {app} message
        ask my {relation} {message}
        text {phone_number} {message}
        send a {app} message to {group_name} saying {message}
        (text|message) {contact_name}
        text {relation} {message}
        tell {group_name} {message}
        tell {room} {message}
        ({message}|{contact_name} {message}|{relation} {message})
        (write|reply) {message}
        message from me to {contact_name} {message}
        send my {relation} my {contact_field}
    """,
    "read_messages": """
        (read|play|check) my (messages|texts)
        do i have any (new |)(messages|texts)
        read my (messages|texts) from ({contact_name}|{group_name}|{app})
        what did {contact_name} (say|want|write)
        read (me|) the {ordinal} message
        any (messages|texts) from my {relation}
        show me (the|my) messages from {date.past}
        (read|show) my {app} messages
        did my {relation} (text|message) me {date.past}
        (read|check) messages in {group_name}
    """,
    "drop_in": """
        drop in on (the|) {room}
        drop in on ({contact_name}|{room}|{group_name}) (|please)
        (call|ring) the {room}
        call {room}
        ({room}|{device}|{contact_name})
        drop in on {device}
        drop in on my {relation} 's {device}
        (connect|talk) to the {room}
        call the {room} {device}
    """,
    "announce": """
        announce {message}
        announce (that|) {message} (in|on) the ({room}|{device})
        tell (everyone|everybody|{relation}) {message}
        (tell|let) the {room} (know|that) {message}
        (broadcast|say) {message} on all {device}s
        ({message}|{room} {message}|tell {room} {message})
        announce to {group_name} (that|) {message}
    """,
    "end_call": """
        hang up
        end (the|this|my) call
        (stop|cancel) (the|that|) call
        hang up on ({contact_name}|{relation}|{business})
        end the call with my {relation}
        stop calling {contact_name}
        cancel the {call_type} call
        hang up the {device}
    """,
    "answer_call": """
        answer (the|my|) (call|phone)
        pick up (|the phone)
        answer (it|{contact_name}) on (my|the) {device}
        ({contact_name}|talk to {contact_name}|talk to {relation}|{call_type})
        (accept|take) the {call_type} call
        answer (the call from |)({contact_name}|{relation}|{business})
        (decline|ignore|reject) the call (|from {contact_name})
        pick up in the {room}
    """,
    "call_back": """
        call (him|her|them) back
        redial
        call {contact_name} (|again)
        call {relation} back
        call ({contact_name}|{relation}|{business}) back
        call back the {ordinal} (number|caller)
        return my {relation} 's call
        redial the last number
        call my {relation} (again|back)
        call back {phone_number}
    """,
    "add_contact": """
        add {contact_name} to my contacts
        (save|add) {phone_number} as {contact_name}
        {contact_name} 's number is {phone_number}
        (create|make) a (new |)contact for {contact_name}
        {contact_name} is my {relation}
        add {phone_number} to {contact_name}
        ({phone_number}|{contact_name} {phone_number}|{relation} {contact_name})
        save {contact_name} 's {number_type} number (|as) {phone_number}
        add {contact_name} to {group_name}
        change my {relation} 's number to {phone_number}
        set {contact_name} 's email to {email}
    """,
    "query_contact": """
        what is {contact_name} 's (phone |)number
        what 's my {relation} 's {contact_field}
        (find|show|get|call up) {business}
        ({contact_name}|{business}|{relation} 's number|{contact_name} 's {number_type})
        {contact_name} (in|at|from) {place}
        (find|show|get|look up) {contact_name} (|in my contacts)
        do i have a number for ({contact_name}|{business})
        what is {contact_name} 's {contact_field}
        whose number is {phone_number}
        who is in {group_name}
        what is the number (for|of) the {business} in {place}
        show me {contact_name} 's {number_type} (number|)
    """,
    "query_call": """
        who (called|called me)
        did {contact_name} call (|me)
        who called (me |){date.past}
        when did my {relation} (last |)call
        how many (missed |)calls do i have
        show (my|the) missed calls from {date.past}
        who was the {ordinal} (caller|call)
        (check|show) calls from {contact_name}
        did the {business} call
        did anyone call from {phone_number}
    """,
    "set_reminder_to_call": """
        remind me to call ({contact_name}|{business}|{relation}) {date}
        remind me to call my {relation} (at|) {time}
        call {contact_name} {date}
        call {contact_name} in {duration}
        call my {relation} (at|) {time}
        remind me to (text|message) {contact_name} {date} at {time}
        schedule a call with {contact_name} for {date}
        (set|schedule) a {call_type} call with {group_name} {date} at {time}
    """,
    "voicemail": """
        (play|check) my voicemail
        do i have (any |)voicemail
        (play|check) messages from {contact_name}
        (play|delete) the {ordinal} voicemail
        leave a voicemail for ({contact_name}|{relation}|{business})
        play the voicemail from my {relation}
        leave {contact_name} a voicemail saying {message}
    """,
    "do_not_disturb": """
        (turn on|enable|turn off) do not disturb
        do not disturb me for {duration}
        (mute|silence) (calls|my {device}) (|for {duration})
        no calls until {time}
        turn off do not disturb on (the|my) {device}
        block calls (|from {contact_name}) (until {time}|for {duration})
    """,
    "block_contact": """
        block ({contact_name}|{business}|{app})
        block (this|that) number
        block {phone_number}
        (unblock|stop blocking) {contact_name}
        don't let {contact_name} call me
        delete {contact_name} from my contacts
    """,
    "speaker_settings": """
        put (it|him|her) on speaker
        (switch|move|transfer) (the|this) call to (the|my) ({device}|{room}|{number_type})
        turn (up|down) the call volume
        mute (my|the) (microphone|mic)
        mute {contact_name}
        (switch|connect) to {device}
        put {contact_name} on the {device}
        switch to {call_type}
        move the call to the {room}
    """,
}

SLOTS = """
    contact_name: {first_name} *6 | {saved_contact} *5 | {full_name} *1.5 |
        doctor {last_name} *0.4 | mister {last_name} *0.3 | {relation} *1.5 | {business_name} *0.5 |
        {rare_first} | {last_name} *0.6
    relation: {relation}
    phone_number: {phone}
    number_type: {number_kind}
    device: {gadget} *4 | {room} {gadget} | {first_name} 's {gadget} *0.7
    call_type: {call_kind}
    business: {business_kind} *3 | {business_name} *4 | {last_name} *0.5
    place: {place}
    app: {known_app} *3 | {brand} *2
    group_name: {group}
    message: {message}
    ordinal: {ordinal} *2 | last *2 | latest | next
    date: {date}
    date.past: {past_day} *3 | {weekday} | last {weekday}
    time: {time}
    duration: {duration}
    room: {room} *4 | {first_name} 's room
    contact_field: {field}
    email: {first_name} at {brand} dot com *2 | {last_name} {figure} at {brand} dot com
"""

CORPUS = Corpus(
    name="communication",
    intents=INTENTS,
    slots=read_recipes(SLOTS),
    siblings=pairs(
        """
        contact_name relation, business contact_name, room device, date time, group_name
        contact_name, number_type device
        """
    ),
    asides=patterns(
        """
        when you get a chance *2 | before i leave for {place} | because {first_name} asked me |
        i promised my {relation} | it 's {weekday} already | if you can *2 | i lost my {gadget} |
        we are late for {meal} | he is at {place} {date} | not {first_name} *1.5 |
        the one from {group_owner} | not the {gadget} *0.7
        """
    ),
)
