// Names for types that HistoryStore and Trips both have: those of the store. TripNames.swift has the others.

import HistoryStore

typealias StoredPeriod = Period
typealias StoredSeries = Series
