// parked: lists the recorded parked periods, newest first.

import ArgumentParser

struct ParkedCommand: PeriodListCommand {
  static let kind = PeriodTable.Kind.parking
  static let configuration = CommandConfiguration(
    commandName: "parked", abstract: "List parked periods, newest first.",
    discussion: """
      Times are in the time zone in which the parked period started. The notes are explained below the list. With --json: \
      {"periods":[…]} in the units of vehicled-history(8).
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @OptionGroup var list: PeriodListOptions
}
