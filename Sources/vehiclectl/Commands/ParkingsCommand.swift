// parkings: lists the recorded parkings, newest first.

import ArgumentParser

struct ParkingsCommand: PeriodListCommand {
  static let kind = PeriodTable.Kind.parking
  static let configuration = CommandConfiguration(
    commandName: "parkings", abstract: "List parkings, newest first.",
    discussion: """
      Times are in the time zone in which the parking started. The notes are explained below the list. With --json: {"periods":[…]} in the \
      units of vehicled-history(8).
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @OptionGroup var list: PeriodListOptions
}
