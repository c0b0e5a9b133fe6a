// trips: lists the recorded trips, newest first.

import ArgumentParser

struct TripsCommand: PeriodListCommand {
  static let kind = PeriodTable.Kind.trip
  static let configuration = CommandConfiguration(
    commandName: "trips", abstract: "List trips, newest first.",
    discussion: """
      Shows the distance, energy or fuel, consumption and state of charge of each trip; energy has an error bound. Times are in the \
      time zone that the computer had when the trip started. The notes are explained below the list. With --json: {"periods":[…]} in the \
      units of vehicled-history(8).
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @OptionGroup var list: PeriodListOptions
}
