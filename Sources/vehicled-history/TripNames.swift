// Aliases for types of Trips whose names also exist in HistoryStore. Names.swift contains those for HistoryStore.

import Trips

typealias DetectedPeriod = Period
typealias TripSample = Sample
typealias TripQuantity = Quantity
