// Names for types that HistoryStore and Trips both have: those of the detector. Names.swift has the others.

import Trips

typealias DetectedPeriod = Period
typealias TripSample = Sample
typealias TripQuantity = Quantity
