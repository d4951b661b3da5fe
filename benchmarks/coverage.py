"""Do the intervals of a leaderboard hold what they promise where votes weigh differently or hang together?

python benchmarks/coverage.py [weights] [judges] [copies] [--repeats 500] [--bootstrap 200]

Protocol, fixed before the first run. A repeat draws true scores, votes and, where there are any, opinions and weights;
`leaderboard` makes a board with default settings, except for those named in the row; counted is the share of all
intervals (of the score less the mean of all items, level 95 %) that hold the truth, and the share of boards on which
all ranks allowed by the rank intervals hold the true rank. Repeats in which wins do not link all items are drawn
again. A row passes when the intervals cover 93 to 97 %; rank intervals are simultaneous and should reach 95 %.

- weights: one judge, a star of four items (the first meets each other one 200 times), scores normal (sd 0.7).
  `one half`: all votes weigh 1, one weighs 0.5. `counts`: votes in rows of equal ones, the weight of a row is their
  number, a tie in five votes is half a vote for either (frequency). `importance`: weights uniform in 0.05 to 1,
  whatever the vote. `probability`: of two kinds of votes, equally frequent, with scores that differ by independent
  normal numbers (sd 0.7), the second is sampled with probability 0.2 and weighs 5; the truth is the population's.
  `soft`: a preference s between 0 and 1 (Beta with the expected mean, concentration 2) as two rows, s and 1 - s.
- judges: 10 items with normal scores (sd 1), 1,500 votes on random pairs by 3, 8, 10, 30 or 40 judges drawn at random
  (`uneven`: judge k gets a share that falls like 0.7 ** k), each of whom adds normal opinions of its own (sd 0, 0.25,
  0.5 or 1) to the scores. The truth is the scores that infinitely many such judges would give.
- copies: 5 judges, 10 items, 150 questions that all judges answer, scores normal (sd 1); three more judges answer as
  the first does; `judges="discounted"`.
"""
