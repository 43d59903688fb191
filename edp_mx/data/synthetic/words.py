"""Word lists, commonest first, that the catalogues are composed of."""

from __future__ import annotations

from itertools import product
from typing import Sequence, Tuple

import numpy as np


def words(text: str) -> Tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


FIRST_NAMES = words("""
    anna ben maria david laura james sofia daniel emma michael olivia john grace thomas lucy
    peter chloe adam hannah mark julia paul sarah kevin nina simon alice george ella victor rosa
    oscar mia leo clara max eva felix iris hugo nora ivan lena omar zoe ravi priya amir leila
    chen mei yuki kenji diego carmen pablo ines marco giulia luca fatima hassan aisha kwame
    amara tunde ngozi sven ingrid lars freya pierre camille antoine elise dmitri olga pavel
    katya arjun deepa vikram anita carlos elena jorge lucia miguel teresa ali samira yusuf zara
    noah liam ethan mason logan jacob ryan tyler megan ashley brittany kayla jordan taylor
    morgan casey riley avery quinn rowan sage hope faith joy dawn april june may summer autumn
    rose lily daisy ivy hazel ruby pearl amber jade crystal mercedes chase hunter mason cooper
    parker carter bill rob will sky star angel prince rich art frank
""")
LAST_NAMES = words("""
    baker carter cooper fisher mason parker turner walker young king hill wood green brown white
    black stone rivers banks fields brooks lake marsh frost winter summers day knight bishop
    pope price rich may march english french west north east best good bright sharp swift strong
    long short small
""")
NAME_STARTS = words("""
    al an ar bal bar bel ben bor bran cal car cas cor dal dar del don dor el fal far fen for gal
    gar gil gor hal har hol il jan jor kal kar kel kor lan lar lin lor mal mar mel mor nal nor
    ol pal per quin ral ren ros sal sel sor tal tan tor ul val var vin wal wen yar zel
""")
NAME_MIDDLES = words("""
    a e i o u an en in on ar er or as es is el il ol
""")
NAME_ENDS = words("""
    by dahl dell dez don eau etti field ford gard ham hart ini kov ksen land ley lund man mann
    mont moto nen nova pour quist ra rell rick ridge rossi sen shaw ski son stad stein ston tes
    ton vale vich ville wall ward wick win worth yama
""")
GIVEN_ENDS = words("""
    a an ay dra el elle en ia iel in ina ine is lyn na o on ra ric sha ta ton us ya
""")
PLACE_ENDS = words("""
    berg brook bury dale field ford gate haven hurst mouth port shire stead ton ville
""")
MEDICINES = words("""
    aspirin ibuprofen insulin metformin lisinopril amoxicillin tylenol advil atorvastatin
    omeprazole prednisone albuterol gabapentin losartan levothyroxine sertraline benadryl zyrtec
    claritin vitamins iron zinc melatonin magnesium calcium folate penicillin codeine xanax
    ritalin allegra
""")
DRUG_STARTS = words("""
    ab ace alo ami bexa bru cal cef cla clo dexa dilo dor edo ela epi flu fora gali glu halo
    hydro ima iso keto lami levo lisi lora meta mira mono nabu nebi nor olme oxa pan para pera
    pheno pra quina rami rispa rosu sali seno sita sulfa tamo tela tri val vera zolo zy
""")
DRUG_MIDDLES = words("""
    ba ca da di fe la lo ma mi na ni pra ra ri ro ta ti va xi zo
""")
DRUG_ENDS = words("""
    caine cillin cycline dipine fen floxacin gliptin lam lol mab micin mine mycin nazole nib
    oxetine pam parin phen pine prazole pril profen ril sartan setron statin tadine tidine
    triptan vir xaban zide zine zole
""")
ADJECTIVES = words("""
    last first dark lost secret little big wild broken silent golden red blue black white hidden
    dead perfect strange long burning frozen endless lonely crazy beautiful american new old
    good bad dirty electric midnight distant quiet hollow crimson silver paper iron glass savage
    gentle bitter sweet crooked sacred forgotten wicked brave final royal modern pretty happy
    fast furious simple
""")
NOUNS = words("""
    house night man girl world city king heart dream river road game boy star day fire summer
    war island train garden mountain sea storm mirror queen doctor detective family neighbor
    wolf bird ocean harbor kingdom winter letter witness stranger hunter dancer teacher bride
    prisoner captain lawyer chef angel ghost widow thief rose crown sword clock bridge tower
    forest desert valley lake shadow moon sun sky rain snow wind light darkness silence echo
    memory promise lie truth secret murder affair wedding party holiday journey escape return
    revenge friday money hero legend daughter mother father brother sister son soldier spy robot
    machine planet galaxy dragon
""")
GERUNDS = words("""
    finding leaving chasing saving killing loving losing breaking becoming running waking
    raising following forgetting meeting burning catching dancing fighting dating hunting
    driving
""")


def combine(*parts: Sequence[str]) -> Tuple[str, ...]:
    """All concatenations of one string of each part, in a fixed shuffled order."""
    found = sorted({"".join(pieces) for pieces in product(*parts)})
    order = np.argsort(np.random.Generator(np.random.PCG64(20240229)).random(len(found)))
    return tuple([found[at] for at in order.tolist()])
