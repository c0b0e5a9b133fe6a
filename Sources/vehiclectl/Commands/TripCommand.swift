// trip: shows one recorded trip.

import ArgumentParser

struct TripCommand: PeriodCommand {
  static let kind = PeriodTable.Kind.trip
  static let configuration = CommandConfiguration(
    commandName: "trip", abstract: "Show a trip.",
    discussion: """
      Shows its distance, energy or fuel, and consumption, each with its error bound and the measurement that it is computed from, and \
      its pauses. With --json: {"period":…,"pauses":[…],"curve":[…]} in the \
      units of vehicled-history(8).
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @Argument(help: "The number of the trip (default: the latest one).")
  var number: Int?
}
