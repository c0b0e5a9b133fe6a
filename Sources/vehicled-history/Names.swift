// Aliases for types of HistoryStore whose names also exist in Trips. TripNames.swift contains those for Trips.

import HistoryStore

typealias StoredPeriod = Period
typealias StoredSeries = Series
