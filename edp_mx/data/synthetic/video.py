"""Video: films, series, channels, playback ("play my favorite movie")."""

from __future__ import annotations

from edp_mx.data.synthetic.grammar import Corpus, pairs
from edp_mx.data.synthetic.values import patterns, read_recipes

INTENTS = {
    "play_video": """
        (play|watch|start) {movie_title}
        (play|watch|put on) {show_title}
        (play|watch|find) ({movie_title}|{show_title}) on {app}
        play season {season} (of|) {show_title}
        play (the|) {sort} episode of {show_title}
        (i want|i'd like|i wanna) to watch ({movie_title}|{show_title})
        play (the movie|) {movie_title} in {quality}
        (play|put on) (the show|) {show_title} on (the|) {device}
        {show_title} season {season} episode {episode}
        ({movie_title}|{show_title})
        play {episode_title} from {show_title}
        play {show_title} episode {episode}
        let 's watch {show_title}
        play my favorite {video_type}
        play (a|some) {genre} {video_type}
        (play|show) the {song_title} video by {artist}
        (resume|continue) {show_title}
        play the trailer (for|of) ({movie_title}|{show_title})
        play ({movie_title}|{show_title}) {language}
    """,
    "search_video": """
        (find|show me|search for) {genre} {video_type}s
        (show me|find) {video_type}s with {actor}
        {movie_title}
        (find|search for|look for) ({movie_title}|{show_title})
        {genre} {video_type}s
        ({actor}|{director}|{movie_title})
        (show me|find) {director} {video_type}s
        search {app} for ({show_title}|{movie_title}|{actor})
        (find|show) {video_type}s from the {decade}
        (show me|find|get) (the |){sort.list} {genre} {video_type}s
        what {video_type}s (star {actor}|have {actor} in them)
        (do you have|is there) ({show_title}|{movie_title}) (|on {app})
        (find|list) {language} {video_type}s
        (show me|find) {genre} (on|in) {app}
        find {award} winning {video_type.long}s (|from {year})
        {actor} {video_type}s
        show me {video_type}s about {topic}
        find the {video_type} where {character} (dies|wins)
        (search|look) for {actor} and {actor}
    """,
    "tune_channel": """
        (tune|turn) to {channel}
        (put on|change to|switch to) {channel}
        (go to|change to) channel {channel_number}
        ({channel}|{app})
        watch {channel} (live|on {device}|)
        watch the {team} game (on {channel}|)
        what channel is {channel}
        turn on {channel} (|in {quality})
        put on the {sport} (game|)
        (play|watch) ({channel}|{app})
        watch {team} on {app}
        turn on {show_title}
    """,
    "pause_or_stop": """
        (pause|stop) (|it)
        (pause|stop) (the|this) {video_type}
        (resume|unpause|continue)
        (stop|turn off) (playing |)({show_title}|{movie_title})
        (pause|stop) (the|my) {device}
        stop {channel}
        stop watching {movie_title}
        exit {app}
    """,
    "seek": """
        (fast forward|rewind|go back|skip ahead) {duration}
        skip (the|this) (intro|recap|scene|part)
        (go|jump) to {position}
        (play|start) (it|this) (from the beginning|over)
        rewind to where {character} (dies|wins)
        (fast forward|skip) to the {sort.next} scene
        start {movie_title} (from the beginning|over)
    """,
    "next_episode": """
        (play|go to|skip to) (the|) {sort.next} episode
        (next|previous) (episode|one)
        (play|) episode {episode}
        (go to|play) season {season} (episode {episode}|)
        what 's the {sort.next} episode of {show_title}
        next episode of {show_title}
        play {episode_title}
    """,
    "query_video": """
        who (is|was|stars) in ({movie_title}|{show_title})
        who (directed|made|wrote) ({movie_title}|{episode_title}|{show_title})
        when did ({movie_title}|{song_title}|{show_title}) come out
        (what is|what 's) ({show_title}|{movie_title}) about
        who plays {character} in ({show_title}|{movie_title})
        how many seasons (does {show_title} have|of {show_title} are there)
        how long is ({movie_title}|{episode_title})
        what is {movie_title} rated
        is {movie_title} a {genre} {video_type}
        what {award} did {movie_title} win
        what else (was|is) {actor} in
        how old is {actor}
        is {actor} in ({movie_title}|{show_title})
    """,
    "recommend": """
        what should (i|we) watch (|{date})
        recommend (a|some) {genre} {video_type}
        what 's (good|new|trending) on {app}
        suggest something like ({show_title}|{movie_title})
        show me something with {actor}
        what are the {sort.list} {genre} {video_type}s
        (any|are there any) good {video_type}s {date}
        i'm in the mood for {genre}
        more like ({movie_title}|{show_title})
        what {language} {video_type}s do you recommend
    """,
    "query_schedule": """
        what 's on {channel} {date}
        (when is {show_title} on|when does {show_title} start|when does {show_title} come on)
        what time is ({movie_title}|{show_title}) on {channel}
        what 's on (tv |){date} (at {time}|)
        is {show_title} on {date}
        when do the {team} play (|next)
        when is the {sort.next} season of {show_title} (coming out|)
        what channel is ({show_title}|{team}|{movie_title}) on
        what movies are playing in {place} {date}
    """,
    "record": """
        record ({show_title}|{movie_title}|{channel})
        record {movie_title} (on {channel}|{date}|at {time})
        (record|dvr) the {team} game {date}
        (record|save) (all|every) (new |)episodes of {show_title}
        (cancel|stop) (the|) recording (of|) {show_title}
        record {channel} {date} from {time} to {time}
        (show|open) my recordings (|of {show_title})
    """,
    "manage_watchlist": """
        add ({movie_title}|{show_title}) to my {list_name}
        (add|save) (this|it) to (my|the) {list_name}
        (remove|delete) ({show_title}|{movie_title}) from my {list_name}
        (open|show|go to) my {list_name}
        put ({movie_title}|{show_title}) (on|in) {list_name}
        is {show_title} (on|in) my {list_name}
    """,
    "rent_or_buy": """
        (rent|buy|play) ({movie_title}|{show_title})
        (buy|order) season {season} of {show_title}
        rent {movie_title} (in {quality}|on {app})
        how much (is {movie_title}|does {movie_title} cost)
        how much is it to rent {movie_title}
        buy {movie_title} for {price}
        find {genre} {video_type}s under {price}
    """,
    "open_app": """
        (open|launch|start) {app}
        (go to|open) {app} on (the|my) {device}
        open {app} (kids|settings)
        (play|watch) ({app}|{channel})
        (close|exit|quit) {app}
        go (home|to home)
    """,
    "display_settings": """
        turn (on|off) (subtitles|captions|closed captions)
        (subtitles|audio|captions) in {language}
        turn on {language} (subtitles|audio)
        (switch|change) (the |)(audio|language) to {language}
        (switch|change) (the quality |)to {quality}
        watch (it|this) in {quality}
        turn (up|down) the (volume|brightness) on {device}
        (play|cast|show) (this|it) (on|to) {device}
        subtitles for {movie_title} in {language}
    """,
    "rate_video": """
        (rate|give) ({movie_title}|{show_title}) {rating}
        i (love|like|hate) ({show_title}|{movie_title}|{actor})
        (thumbs up|thumbs down) (for|) {movie_title}
        give (this|it) {rating}
        (i've|i have) (already |)(seen|watched) {movie_title}
        i don't (like|want to see) {genre} {video_type}s
    """,
    "parental_control": """
        (block|hide|lock) ({show_title}|{app}|{channel})
        (block|hide) {genre} {video_type}s (|on {device})
        set the (age|rating) limit to {age_rating}
        only {age_rating} {video_type}s for {profile}
        switch to {profile} 's profile
        (block|lock) {channel} (after|until) {time}
    """,
}

SLOTS = """
    movie_title: {known_film} *6 | {any_title} *3 | {film_mark}
    show_title: {known_series} *6 | {title_of_series} *3
    episode_title: {any_title}
    song_title: {known_song}
    artist: {known_actor} *2 | the {team_end} | {brand} *0.5 | the {adjective} {noun}s
    actor: {known_actor} *6 | {full_name} *3 | {last_name} *0.5
    director: {known_director} *4 | {full_name} | {last_name}
    character: {first_name} *3 | {first_name} {character_end} | {adjective} {character_end} |
        the {noun} *1.5 | captain {last_name} *0.6 | {full_name}
    channel: {channel_start} *3 | {channel_start} {channel_end} *2 | {brand} {channel_end} |
        the {channel_start} channel *0.7 | {place} news *0.5 | channel {number} *0.6
    channel_number: {number} *3 | {strength} | {figure}{digit}
    app: {streaming} *3 | {brand} *3 | {brand} {app_end}
    genre: {genre}
    video_type: movie *5 | show *4 | film *1.5 | video *1.5 | cartoon *0.6 | episode *0.5 |
        trailer *0.3 | clip *0.3
    video_type.long: movie *4 | show *2 | film | documentary film *0.3
    season: {unit} *3 | {figure} | {small}
    episode: {number}
    sort: latest *2 | newest *2 | next *2 | last *2 | {ordinal} *2 | best | most popular |
        final *0.6 | top rated *0.6 | first *2 | pilot *0.2
    sort.list: newest *3 | latest *2 | best *2 | most popular | top rated | top ten
    sort.next: next *5 | last *2 | {ordinal} | previous | first | latest
    language: {language}
    quality: {quality}
    decade: {decade} *4
    year: {year}
    award: oscar *3 | emmy *2 | golden globe | award | bafta *0.4
    topic: {noun}s *2 | {topic} *3 | {place} *0.6 | {first_name} {last_name} *0.4
    team: {team} *2 | {nickname} *2 | {place} *0.5
    sport: {sport} *3 | {team_end} *0.5
    list_name: watch list *4 | favorites *2 | queue | list | {first_name} 's list *0.7 |
        {adjective} {genre} list *0.6 | library *0.7 | {noun} night list *0.3
    price: {figure} dollars *3 | {unit} ninety nine *2 | free | {small} bucks
    rating: {unit} stars *4 | {unit} out of ten | {unit} and a half stars | a thumbs up
    age_rating: pg *2 | pg thirteen *2 | r rated | kids | tv 14 | g *0.5
    profile: {first_name} *3 | kids | {relation}
    device: {room} {gadget} *2 | {gadget} *3 | {room} | {first_name} 's {gadget} *0.5
    date: {date} *3 | tonight *2
    time: {time}
    duration: {number} {span_short} *4 | a minute | {small} and a half minutes *0.4 |
        a few seconds *0.5
    position: {number} {span_short} *2 | the end | the beginning | the credits |
        the one hour mark *0.5 | {unit} hour {figure} *0.7
    place: {place}
"""

CORPUS = Corpus(
    name="video",
    intents=INTENTS,
    slots=read_recipes(SLOTS),
    siblings=pairs(
        """
        movie_title show_title, show_title channel, actor director, episode_title
        movie_title, genre video_type, sort episode, artist actor, team sport, app
        channel, duration position, character actor, date time
        """
    ),
    asides=patterns(
        """
        when you get a chance *2 | {first_name} loves it | not the {year} one |
        the one with {common_first} | i saw it in {place} | we watched it {past_day} |
        not the {noun} one | my {relation} told me about it | if it 's on | not in the {room} *0.7 |
        it has a {noun} in it | i am bored
        """
    ),
)
