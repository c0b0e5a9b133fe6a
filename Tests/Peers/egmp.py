# A scenario for the PyPI ELM327-emulator: a Kia EV6 (rear-wheel drive, cold) that answers 220101 and refuses 2101.
# Payload: the public capture V2 of OBDb/Kia-EV6 (tests/test_cases/2022/commands/7E4.7EC.220101). Load it with
# `merge FILE` and `scenario egmp`.
ELM_FOOTER = r"[0-9]?$"
PAGE = (
    "62 01 01 EF FB E7 EF 6F 00 00 00 00 00 00 07 1B F5 01 FF 00 01 00 01 00 00 24 BA 13 BA 71 00 00 80 00 01 3C "
    "0D 00 01 37 4A 00 00 EC 0D 00 00 E4 65 01 00 80 77 00 02 CD 11 0B 00 00 06 84"
)
ObdMessage = {
    "egmp": {
        "BMS_PAGE_1": {
            "Request": "^220101" + ELM_FOOTER,
            "Descr": "battery controller, page 1",
            "Header": "7E4",
            "Response": "<pos_answer>" + PAGE[9:] + "</pos_answer>",
        },
        "BMS_OLD": {
            "Request": "^2101" + ELM_FOOTER,
            "Descr": "the request of older cars",
            "Header": "7E4",
            "Response": "<neg_answer>11</neg_answer>",
        },
    }
}
