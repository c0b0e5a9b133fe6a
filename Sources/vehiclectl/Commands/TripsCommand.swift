// trips: the trips that the history recorded, newest first.

import ArgumentParser

struct TripsCommand: PeriodListCommand {
  static let kind = PeriodTable.Kind.trip
  static let configuration = CommandConfiguration(
    commandName: "trips", abstract: "List trips, newest first.",
    discussion: """
      The figures of a trip are its distance, energy or fuel with consumption, and the state of charge; energy has the bound of its \
      error. Times are local where the trip started. The notes are explained below the list. With --json: {"periods":[…]} in the \
      units of vehicled-history(8).
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @OptionGroup var list: PeriodListOptions
}
